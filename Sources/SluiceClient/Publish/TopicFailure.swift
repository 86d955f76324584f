import SluiceWire

/// What crosses the network of a failure: a code and a line that the program has chosen.
///
/// An error may describe anything: a response with its headers, a password, a file. So a publisher's failure reaches the topic's subscribers as one of these, and nothing else
/// of it does. Fail with a `TopicFailure`, or give `publish(to:when:failure:)` a function that makes one of your errors:
///
/// ```swift
/// func failure(of error: any Error) -> TopicFailure {
///   TopicFailure(code: 201, message: "the sensor is gone")
/// }
/// ```
///
/// Of another error only its type's name crosses; with `SluiceClientFoundation`, the description of a `LocalizedError` as well.
public struct TopicFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The longest description of an error that crosses by itself, in characters.
  package static let longestDescription = 300

  /// A code of the program's, 200 or more.
  public var code: UInt32
  /// The message for subscribers: one line without a full stop. Cut at 65,535 bytes when it is sent.
  public var message: String

  /// The code of a failure that has no other.
  public static let standardCode: UInt32 = 200

  /// A failure with what subscribers may know of it.
  public init(code: UInt32 = standardCode, message: String) {
    self.code = code
    self.message = message
  }

  /// What may be known of any error: a `TopicFailure` is itself, of a ``ClientError`` its code and its message without another error's text in it, of others the type's name.
  public init(describing error: any Error) {
    switch error {
    case let failure as TopicFailure: self = failure
    case let error as ClientError:
      self.init(code: error.brokerCode ?? Self.standardCode, message: error.crossingMessage)
    default: self.init(message: Self.name(of: error))
    }
  }

  /// The name of the error's type, without what it contains.
  package static func name(of error: any Error) -> String { String(describing: type(of: error)) }

  public var description: String { message }
}

extension ClientError {
  /// The message without the text of a coder's error, which may quote a record, or anything else.
  var crossingMessage: String {
    switch code {
    case .decodeFailed: "a record\(topic.map { " of topic \($0)" } ?? "") can't be decoded"
    case .encodeFailed: "a value can't be encoded to be published"
    default: message
    }
  }

  /// A failure for a producer to end its topic with.
  ///
  /// ```swift
  /// subject.send(completion: .failure(.topicFailure(TopicFailure(code: 201, message: "out of paper"))))
  /// ```
  public static func topicFailure(_ failure: TopicFailure) -> ClientError {
    topicFailure(failure.message, code: failure.code)
  }
}
