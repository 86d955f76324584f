import FoundationEssentials

/// A message of a stream, in the memory in which it arrived. Valid during the call only.
public struct StoredMessageView {
  public let subject: NATSBytes
  public let sequence: UInt64
  /// The headers with which the message was published, and those of the read.
  public let headers: NATSHeadersView
  public let payload: NATSBytes
  /// The number of further messages that match a read of several; 0 otherwise.
  public let pending: UInt64

  init(subject: NATSBytes, sequence: UInt64, headers: NATSHeadersView, payload: NATSBytes) {
    self.subject = subject
    self.sequence = sequence
    self.headers = headers
    self.payload = payload
    pending = 0
  }

  /// - Returns: nil if the headers of a stored message are missing.
  init?(direct message: NATSMessageView) {
    guard let headers = message.headers, let subject = headers["Nats-Subject"],
      let sequence = headers.number("Nats-Sequence")
    else { return nil }
    self.subject = subject
    self.sequence = sequence
    self.headers = headers
    payload = message.payload
    pending = headers.number("Nats-Num-Pending") ?? 0
  }
}

/// A message of a stream, with its own memory.
public struct StoredMessage: Hashable, Sendable {
  public var subject: String
  public var sequence: UInt64
  public var headers: NATSHeaders
  public var payload: [UInt8]

  public init(_ message: StoredMessageView) {
    subject = message.subject.text
    sequence = message.sequence
    headers = NATSHeaders(message.headers)
    payload = message.payload.array
  }

  /// Passes the message as a view, like one that has just arrived.
  func withView(_ body: (StoredMessageView) -> Void) throws(NATSError) {
    try headers.block.withBytes { block throws(NATSError) in
      try Array(subject.utf8).withBytes { subject throws(NATSError) in
        try payload.withBytes { payload throws(NATSError) in
          body(
            StoredMessageView(
              subject: subject, sequence: sequence, headers: NATSHeadersView(block), payload: payload))
        }
      }
    }
  }

  init(subject: String, sequence: UInt64, headers: NATSHeaders, payload: [UInt8]) {
    self.subject = subject
    self.sequence = sequence
    self.headers = headers
    self.payload = payload
  }
}

/// The position of a read of several messages.
public struct ReadPage: Hashable, Sendable {
  /// The sequence of the last message of the page; 0 for none.
  public var lastSequence: UInt64
  /// The number of further matching messages. The next page begins after ``lastSequence``.
  public var pending: UInt64
  /// For reads of last messages, the last sequence that the read includes; the next page must use the same. Nil otherwise.
  public var upTo: UInt64?

  public init(lastSequence: UInt64, pending: UInt64, upTo: UInt64? = nil) {
    self.lastSequence = lastSequence
    self.pending = pending
    self.upTo = upTo
  }
}

/// The message to read.
public enum MessageSelector: Hashable, Sendable {
  /// The message with a sequence.
  case sequence(UInt64)
  /// The last one of a subject.
  case last(subject: String)
  /// The first one whose subject matches and whose sequence isn't smaller.
  case next(pattern: String, from: UInt64)
}
