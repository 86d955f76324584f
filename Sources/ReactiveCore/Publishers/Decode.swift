extension Publishers {
  /// Passes on what a decoder makes of each value, and fails if the decoder throws.
  public struct Decode<Upstream: Publisher, Output: Decodable, Coder: TopLevelDecoder>: Publisher
  where Upstream.Output == Coder.Input {
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream

    private let decoder: Coder

    /// Decodes the values of a publisher.
    public init(upstream: Upstream, decoder: Coder) {
      self.upstream = upstream
      self.decoder = decoder
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          "Decode", DecodeStage<Output, Coder, Upstream.Failure>(coder: decoder), downstream: subscriber))
    }
  }
}

extension Publishers.Decode: Sendable where Upstream: Sendable, Coder: Sendable {}

private struct DecodeStage<Output: Decodable, Coder: TopLevelDecoder, UpstreamFailure: Error>: Stage {
  typealias Errors = Trying<UpstreamFailure>

  let coder: Coder

  func receive(_ input: Coder.Input) throws -> Verdict<Output> {
    .pass(try coder.decode(Output.self, from: input))
  }
}

extension Publisher {
  /// Passes on what a decoder makes of each value. If the decoder throws, cancels upstream and fails with
  /// that error.
  public func decode<Item: Decodable, Coder: TopLevelDecoder>(
    type: Item.Type, decoder: Coder
  ) -> Publishers.Decode<Self, Item, Coder> where Output == Coder.Input {
    Publishers.Decode(upstream: self, decoder: decoder)
  }
}
