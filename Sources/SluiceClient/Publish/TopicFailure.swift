import SluiceWire

/// The form in which a failure is sent to other processes: a code and a line, chosen by the program.
///
/// An error may contain anything: a response with its headers, a password, a file. Therefore a publisher's failure reaches the topic's subscribers only in
/// this form. Fail with a `TopicFailure`, or give `publish(to:when:failure:)` a function that converts your errors:
///
/// ```swift
/// func failure(of error: any Error) -> TopicFailure {
///   TopicFailure(code: 201, message: "the sensor is gone")
/// }
/// ```
///
/// Of any other error only its type's name is sent; with `SluiceClientFoundation`, also the description of a `LocalizedError`.
public struct TopicFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The longest description of an error that is sent by default, in characters.
  package static let longestDescription = 300

  /// A code of the program's, 200 or more.
  public var code: UInt32
  /// The message for subscribers: one line without a full stop. Cut at 65,535 bytes when it is sent.
  public var message: String

  /// The default code of a failure.
  public static let standardCode: UInt32 = 200

  /// A failure with the code and message that subscribers get.
  public init(code: UInt32 = standardCode, message: String) {
    self.code = code
    self.message = message
  }

  /// The failure that is sent by default for an error: a `TopicFailure` itself; the code of a ``ClientError``, and its message without another error's text;
  /// the name of any other error's type.
  public init(describing error: any Error) {
    switch error {
    case let failure as TopicFailure: self = failure
    case let error as ClientError:
      self.init(code: error.brokerCode ?? Self.standardCode, message: error.crossingMessage)
    default: self.init(message: Self.name(of: error))
    }
  }

  /// The name of the error's type, without its contents.
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
