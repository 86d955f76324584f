import Foundation
import SluiceClient
import Synchronization

/// A line to the kit: an answer, or an event. Parts that are nil aren't written.
struct Line: Encodable, Sendable {
  struct Failure: Encodable, Sendable {
    var code: UInt32
    var retry: Bool
    var message: String
    /// Whether the failure is a mistake in the program, rather than an error of the client.
    var `internal`: Bool

    init(_ error: any Error) {
      guard let error = error as? ClientError else {
        (code, retry, message, self.internal) = (0, false, "\(error)", true)
        return
      }
      code = error.brokerCode ?? Self.found[error.code] ?? 0
      (retry, message, self.internal) = (error.isRetryable, error.message, false)
    }

    /// The protocol's codes for errors that the client detects before the broker does.
    private static let found: [ClientError.Code: UInt32] = [
      .keepaliveTimeout: 7, .topicEnded: 103, .recordTooLarge: 106, .limitReached: 113,
    ]
  }

  /// The result of a call about topics, cursors or the broker.
  enum Value: Encodable, Sendable {
    case text(String)
    case texts([String])
    case numbers([UInt64])
    case topic(head: UInt64, floor: UInt64, state: String, subscriptions: Int)
    case consumers([Consumer])

    struct Consumer: Encodable, Sendable {
      var name: String
      var next: UInt64
    }

    private enum Keys: CodingKey { case head, floor, state, subscriptions }

    func encode(to encoder: any Encoder) throws {
      switch self {
      case .text(let text): try text.encode(to: encoder)
      case .texts(let texts): try texts.encode(to: encoder)
      case .numbers(let numbers): try numbers.encode(to: encoder)
      case .consumers(let consumers): try consumers.encode(to: encoder)
      case .topic(let head, let floor, let state, let subscriptions):
        var topic = encoder.container(keyedBy: Keys.self)
        try topic.encode(head, forKey: .head)
        try topic.encode(floor, forKey: .floor)
        try topic.encode(state, forKey: .state)
        try topic.encode(subscriptions, forKey: .subscriptions)
      }
    }
  }

  /// A pair of strings on the line.
  struct Header: Encodable, Sendable {
    var header: Message.Header

    func encode(to encoder: any Encoder) throws {
      var pair = encoder.unkeyedContainer()
      try pair.encode(header.name)
      try pair.encode(Data(header.value))
    }
  }

  // An answer
  var id: Int?
  var error: Failure?
  var offsets: [UInt64?]?
  var value: Value?

  // An event
  var on: String?
  var event: String?
  var topic: String?
  var offset: UInt64?
  var time: Int64?
  var attempt: Int?
  var payload: Data?
  var key: Data?
  var headers: [Header]?
  var next: UInt64?
  var missed: UInt64?
  var count: Int?
  var code: UInt32?
  var retry: Bool?
  var message: String?

  // The first line
  var client: String?
  var lacks: [String]?

  private static let output = Mutex(FileHandle.standardOutput)

  /// Writes the complete line. For use from any thread.
  func write() {
    guard var bytes = try? JSONEncoder().encode(self) else { preconditionFailure("a line can't be encoded") }
    bytes.append(UInt8(ascii: "\n"))
    Self.output.withLock { $0.write(bytes) }
  }
}
