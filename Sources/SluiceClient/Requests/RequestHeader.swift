/// The headers by which a request finds its reply, as other messaging systems call them.
enum RequestHeader {
  /// On a request: the topic that its reply is to be published to.
  static let replyTo = "reply-to"
  /// On both: which reply belongs to which request.
  static let correlation = "correlation-id"
  /// On a reply: that the request couldn't be answered, and why.
  static let failure = "reply-error"
}

extension TopicRecord {
  /// The text of the first header of that name.
  func header(_ name: String) -> String? {
    headers.first { $0.name == name }?.string
  }
}
