import Foundation
import PortableCombine

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// Names that a program may define if it imports only PortableCombine: every name of CombineExtras, in the same place and with the same parameters,
// but with another meaning.

enum AsyncSequencePublisher { static let owner = "program" }
enum DecodedDataTaskError { static let owner = "program" }
enum DispatchTimerConfiguration { static let owner = "program" }
enum Effect { static let owner = "program" }
enum EffectScope { static let owner = "program" }
enum Pausable { static let owner = "program" }
enum PausableCancellable { static let owner = "program" }
enum Reducer { static let owner = "program" }
enum ReplaySubject { static let owner = "program" }
enum Store { static let owner = "program" }

extension Publishers {
  enum DispatchTimer { static let owner = "program" }
  enum ReplayScope {
    case forever
    case whileConnected
  }
  enum ShareReplay { static let owner = "program" }

  static func timer(
    queue: DispatchQueue? = nil, interval: DispatchTimeInterval,
    leeway: DispatchTimeInterval = .nanoseconds(0),
    times: Subscribers.Demand = .unlimited
  ) -> String { "program" }
}

extension Subscribers {
  enum PausableSink { static let owner = "program" }
}

extension URLSession {
  enum DecodedDataTaskPublisher { static let owner = "program" }

  func decodedDataTaskPublisher<Value: Decodable, Decoder: TopLevelDecoder>(
    for url: URL, as type: Value.Type = Value.self, decoder: Decoder = JSONDecoder()
  ) -> String where Decoder.Input == Data { "program" }

  func decodedDataTaskPublisher<Value: Decodable, Decoder: TopLevelDecoder>(
    for request: URLRequest, as type: Value.Type = Value.self, decoder: Decoder = JSONDecoder()
  ) -> String where Decoder.Input == Data { "program" }
}

extension Publisher {
  func eraseToEffect() -> String { "program" }

  func pausableSink(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void = { _ in },
    receiveValue: @escaping (Output) -> Bool
  ) -> String { "program" }

  func share(replay count: Int, scope: Publishers.ReplayScope = .whileConnected) -> String { "program" }

  func unwrap<Value>() -> String where Output == Value? { "program" }
}

extension AsyncSequence where Self: Sendable {
  var publisher: String { "program" }
}
