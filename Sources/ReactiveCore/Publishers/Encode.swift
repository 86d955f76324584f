extension Publishers {
  /// Passes on each value as an encoder encodes it, and fails if the encoder throws.
  public struct Encode<Upstream: Publisher, Coder: TopLevelEncoder>: Publisher
  where Upstream.Output: Encodable {
    public typealias Output = Coder.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream

    private let encoder: Coder

    /// Encodes the values of a publisher.
    public init(upstream: Upstream, encoder: Coder) {
      self.upstream = upstream
      self.encoder = encoder
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "Encode", EncodeStage<Upstream.Output, Coder, Upstream.Failure>(coder: encoder), to: subscriber)
    }
  }

  /// Passes on each value as a decoder decodes it, and fails if the decoder throws.
  public struct Decode<Upstream: Publisher, Output: Decodable, Coder: TopLevelDecoder>: Publisher
  where Upstream.Output == Coder.Input {
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream

    private let decoder: Coder

    /// Decodes the values of a publisher.
    public init(upstream: Upstream, decoder: Coder) {
      self.upstream = upstream
      self.decoder = decoder
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach("Decode", DecodeStage<Output, Coder, Upstream.Failure>(coder: decoder), to: subscriber)
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

extension Publishers.Decode: Sendable where Upstream: Sendable, Coder: Sendable {}

private struct DecodeStage<Output: Decodable, Coder: TopLevelDecoder, UpstreamFailure: Error>: Stage {
  typealias Errors = Trying<UpstreamFailure>

  let coder: Coder

  func receive(_ input: Coder.Input) throws -> Verdict<Output> {
    .pass(try coder.decode(Output.self, from: input))
  }
}

/// A type that turns a whole value into one output, such as the bytes of a JSON text.
public protocol TopLevelEncoder<Output> {
  /// The type of encoded values.
  associatedtype Output

  /// Encodes a value.
  ///
  /// - Throws: What says why the value can't be encoded.
  func encode<T: Encodable>(_ value: T) throws -> Output
}

/// A type that makes a whole value of one input, such as the bytes of a JSON text.
public protocol TopLevelDecoder<Input> {
  /// The type of the input.
  associatedtype Input

  /// Decodes a value.
  ///
  /// - Throws: An error that names the invalid part of the input.
  func decode<T: Decodable>(_ type: T.Type, from input: Input) throws -> T
}

extension Publisher where Output: Encodable {
  /// Passes on each value as an encoder encodes it. If the encoder throws, cancels upstream and fails with
  /// that error.
  public func encode<Coder: TopLevelEncoder>(encoder: Coder) -> Publishers.Encode<Self, Coder> {
    Publishers.Encode(upstream: self, encoder: encoder)
  }
}

extension Publisher {
  /// Passes on each value as a decoder decodes it. If the decoder throws, cancels upstream and fails with
  /// that error.
  public func decode<Item: Decodable, Coder: TopLevelDecoder>(
    type: Item.Type, decoder: Coder
  ) -> Publishers.Decode<Self, Item, Coder> where Output == Coder.Input {
    Publishers.Decode(upstream: self, decoder: decoder)
  }
}
