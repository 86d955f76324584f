extension Publishers {
  /// Passes on each value as an encoder encodes it, and fails if the encoder throws.
  public struct Encode<Upstream: Publisher, Coder: TopLevelEncoder>: Publisher
  where Upstream.Output: Encodable {
    public typealias Output = Coder.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream

    private let encoder: Coder

    /// Encodes the values of a publisher.
    public init(upstream: Upstream, encoder: Coder) {
      self.upstream = upstream
      self.encoder = encoder
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          "Encode", EncodeStage<Upstream.Output, Coder, Upstream.Failure>(coder: encoder),
          downstream: subscriber))
    }
  }
}

extension Publishers.Encode: Sendable where Upstream: Sendable, Coder: Sendable {}

private struct EncodeStage<Input: Encodable, Coder: TopLevelEncoder, UpstreamFailure: Error>: Stage {
  typealias Errors = Trying<UpstreamFailure>

  let coder: Coder

  func receive(_ input: Input) throws -> Verdict<Coder.Output> {
    .pass(try coder.encode(input))
  }
}

extension Publisher where Output: Encodable {
  /// Passes on each value as an encoder encodes it. If the encoder throws, cancels upstream and fails with
  /// that error.
  public func encode<Coder: TopLevelEncoder>(encoder: Coder) -> Publishers.Encode<Self, Coder> {
    Publishers.Encode(upstream: self, encoder: encoder)
  }
}
