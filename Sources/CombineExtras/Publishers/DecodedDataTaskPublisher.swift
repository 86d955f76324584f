public import Foundation
import PortableCombine

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// An error that prevents a decoded response.
public enum DecodedDataTaskError: Error {
  /// No response came.
  case loading(URLError)
  /// The response could not be decoded. The response has the status, which often says why.
  case decoding(any Error, data: Data, response: URLResponse)
}

extension URLSession {
  /// Sends a request, decodes the body of the response and delivers the result, then finishes.
  ///
  /// Nothing is sent before the subscriber asks. Each subscription sends the request anew. Cancelling
  /// cancels the task, and nothing more is delivered. Decoding and delivery are on the session's delegate
  /// queue. A body is decoded whatever the response's status code.
  public struct DecodedDataTaskPublisher<Output: Decodable, Decoder: TopLevelDecoder>: Publisher
  where Decoder.Input == Data {
    public typealias Failure = DecodedDataTaskError

    /// The request to send.
    public let request: URLRequest
    /// The session whose tasks send it.
    public let session: URLSession
    /// The decoder of the body, for all subscribers.
    public let decoder: Decoder

    /// A publisher that sends a request and decodes the response.
    public init(request: URLRequest, session: URLSession, decoder: Decoder) {
      self.request = request
      self.session = session
      self.decoder = decoder
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      session.dataTaskPublisher(for: request)
        .mapError { DecodedDataTaskError.loading($0) }
        .tryMap { [decoder] data, response in
          do {
            return try decoder.decode(Output.self, from: data)
          } catch {
            throw DecodedDataTaskError.decoding(error, data: data, response: response)
          }
        }
        // `tryMap` passes on the errors of the `mapError` before it and what its closure throws: all are of this type.
        .mapError { $0 as! DecodedDataTaskError }
        .subscribe(subscriber)
    }
  }

  /// A publisher that loads what is at a URL and decodes it.
  ///
  ///     struct Person: Decodable { var name: String }
  ///     let person = URLSession.shared.decodedDataTaskPublisher(for: url, as: Person.self)
  ///     let subscription = person.sink { print($0) } receiveValue: { print($0.name) }
  ///
  /// - Parameters:
  ///   - url: What to load.
  ///   - type: What to decode.
  ///   - decoder: What decodes it; a `JSONDecoder` unless given. Subscribers whose responses come at the same time use it at the same time.
  public func decodedDataTaskPublisher<Value: Decodable, Decoder: TopLevelDecoder>(
    for url: URL, as type: Value.Type = Value.self, decoder: Decoder = JSONDecoder()
  ) -> DecodedDataTaskPublisher<Value, Decoder> where Decoder.Input == Data {
    decodedDataTaskPublisher(for: URLRequest(url: url), as: type, decoder: decoder)
  }

  /// A publisher that sends a request and decodes the response.
  ///
  /// - Parameters:
  ///   - request: What to send.
  ///   - type: What to decode.
  ///   - decoder: What decodes it; a `JSONDecoder` unless given. Subscribers whose responses come at the same time use it at the same time.
  public func decodedDataTaskPublisher<Value: Decodable, Decoder: TopLevelDecoder>(
    for request: URLRequest, as type: Value.Type = Value.self, decoder: Decoder = JSONDecoder()
  ) -> DecodedDataTaskPublisher<Value, Decoder> where Decoder.Input == Data {
    DecodedDataTaskPublisher(request: request, session: self, decoder: decoder)
  }
}

extension URLSession.DecodedDataTaskPublisher: Sendable where Decoder: Sendable {}
