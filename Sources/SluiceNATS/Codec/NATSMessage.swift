/// A message in the memory in which it arrived. Valid only during the call that passes it; ``NATSMessage/init(_:)`` copies it.
public struct NATSMessageView {
  public let subject: NATSBytes
  /// The number of its subscription.
  public let subscription: UInt64
  /// The subject for an answer; nil if none is expected.
  public let reply: NATSBytes?
  /// Nil without headers.
  public let headers: NATSHeadersView?
  public let payload: NATSBytes

  /// The status in the headers, such as 503, from the server or a responder; nil without one.
  public var status: Int? { headers?.status }
}

/// A message with its own memory.
public struct NATSMessage: Hashable, Sendable {
  public var subject: String
  /// The subject for an answer; nil if none is expected.
  public var reply: String?
  public var headers: NATSHeaders
  public var payload: [UInt8]
  /// Bytes to insert into ``payload`` when the message is sent; empty in a received message.
  public var inserts: [NATSInsert] = []

  public init(
    subject: String, reply: String? = nil, headers: NATSHeaders = NATSHeaders(), payload: [UInt8] = []
  ) {
    self.subject = subject
    self.reply = reply
    self.headers = headers
    self.payload = payload
  }

  public init(_ message: NATSMessageView) {
    subject = message.subject.text
    reply = message.reply?.text
    headers = message.headers.map { NATSHeaders($0) } ?? NATSHeaders()
    payload = message.payload.array
  }

  /// The bytes of the whole payload.
  public var payloadCount: Int { inserts.reduce(payload.count) { $0 + $1.count } }
}

/// A message from the server. Slices are valid only during the call that passes it.
public enum NATSOperation {
  /// JSON about the server: its first message, which is sent again after changes.
  case info(NATSBytes)
  case message(NATSMessageView)
  case ping
  case pong
  /// The server has accepted the client's last message. Sent to verbose clients only.
  case ok
  /// The text of an error, without quotes.
  case error(NATSBytes)
}
