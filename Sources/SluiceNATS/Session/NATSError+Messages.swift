/// Errors of messages that weren't sent, and of requests without an answer.
extension NATSError {
  private init(_ code: Code, _ subject: String, _ message: String, server: String?) {
    self.init(code, message, server: server)
    self.subject = subject
  }

  /// - Parameters:
  ///   - isLeaving: whether the client is about to move to another server.
  ///   - isClosed: whether the client has ended.
  ///   - last: the reason why there is no connection.
  ///   - server: the server, if there is one.
  static func notSent(
    _ subject: String, isLeaving: Bool, isClosed: Bool, last: NATSError?, server: String?
  ) -> NATSError {
    NATSError(
      isClosed ? .closed : .notSent, subject,
      "a message to \(subject) wasn't sent: "
        + (isLeaving
          ? "the server is about to stop, and the client goes to another; try again"
          : "there is no connection to a NATS server\(last.map { ": \($0)" } ?? "")"),
      server: server)
  }

  static func payloadTooLarge(_ subject: String, bytes: Int, maximum: Int) -> NATSError {
    NATSError(
      .payloadTooLarge, subject,
      "a message to \(subject) has \(bytes) bytes, and the server takes \(maximum); raise its max_payload or send less",
      server: nil)
  }

  static func backlogFull(_ subject: String, bytes: Int) -> NATSError {
    NATSError(
      .backlogFull,
      "\(bytes) bytes wait for the server already, so a message to \(subject) wasn't sent; wait for answers first"
    )
  }

  /// The error for a connection that has ended before the answer arrived.
  ///
  /// - Parameter wasWritten: whether the whole request was written, so that it may have been processed.
  static func interrupted(_ subject: String, wasWritten: Bool, _ cause: NATSError) -> NATSError {
    wasWritten
      ? NATSError(
        .outcomeUnknown, subject,
        "the connection was lost while the answer to a request to \(subject) was awaited; it may have been carried out, so find that out before trying again: \(cause.message)",
        server: cause.server)
      : NATSError(
        .notSent, subject,
        "the connection was lost before a request to \(subject) was sent, so that trying again is safe: \(cause.message)",
        server: cause.server)
  }

  static func timeout(_ subject: String, after timeout: Duration, server: String) -> NATSError {
    NATSError(
      .timeout, subject,
      "a request to \(subject) wasn't answered within \(timeout); it may have been carried out",
      server: server)
  }

  static func noResponders(_ subject: String, server: String) -> NATSError {
    NATSError(
      .noResponders, subject,
      "nothing answers requests to \(subject) at present; is JetStream enabled, and does the stream exist?",
      server: server)
  }
}
