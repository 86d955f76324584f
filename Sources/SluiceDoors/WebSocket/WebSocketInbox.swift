import Glibc
import SluiceIO
import SluiceWebSocket

/// The received side of a client's WebSocket: the payloads of its messages, which are unpacked in place. Compressed messages are inflated into the reader's
/// buffer.
struct WebSocketInbox {
  private var session: WebSocketSession
  /// Bytes of frames that aren't unpacked yet: they came with the request, or the buffer had no room for the payload before them.
  private var early: [UInt8] = []
  /// Nil if messages aren't compressed.
  private let messages: WebSocketMessageReader?

  /// - Parameter inflaters: nil if messages aren't compressed.
  init(_ inflaters: InflaterPool? = nil) {
    messages = inflaters.map { WebSocketMessageReader($0) }
    // This side buffers no message, and the native protocol has its own limits and its own PING.
    let limits = WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1)
    session = WebSocketSession(
      .server,
      WebSocketSession.Rules(
        limits: limits, takesText: false, compression: inflaters != nil, pingAfter: 0), now: 0)
  }

  /// Whether ``inflate(_:into:answers:)`` unpacks the messages.
  var isCompressed: Bool { messages != nil }

  /// Whether bytes can be read before more arrive.
  var hasEarly: Bool { !early.isEmpty || messages?.isBlocked == true }

  var heldBytes: Int { early.count + session.heldBytes + (messages?.heldBytes ?? 0) }

  /// Appends bytes that came with the request.
  mutating func append(early bytes: [UInt8]) { early += bytes }

  /// Copies bytes that came with the request into the reader's buffer. Returns how many.
  mutating func takeEarly(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(early.count, buffer.count)
    unsafe buffer.copyBytes(from: early[..<count])
    early.removeFirst(count)
    return count
  }

  /// Moves the payloads of messages to the front of the buffer that contains them.
  ///
  /// - Parameter answers: receives control frames to send.
  /// - Returns: the number of payload bytes, and how the WebSocket ended after them; nil while it is open.
  mutating func unpack(
    _ bytes: UnsafeMutableRawBufferPointer, answers: inout [UInt8]
  ) -> (count: Int, ending: WebSocketEnding?) {
    guard let base = bytes.baseAddress else { return (0, nil) }
    var count = 0
    var ending: WebSocketEnding?
    unsafe session.receive(bytes, now: 0, output: &answers) { action in
      switch action {
      case .part(_, let part, _, _, _):
        guard let start = part.baseAddress else { return }
        // A payload never begins before the end of the bytes that were moved.
        unsafe memmove(base + count, start, part.count)
        count += part.count
      case .end(let end): ending = end
      }
    }
    return (count, ending)
  }

  /// Writes the bytes of messages, inflated if compressed, into the reader's buffer, as far as there is room. The rest is kept as it arrived.
  ///
  /// - Parameters:
  ///   - chunk: received bytes; empty while ``hasEarly``.
  ///   - answers: receives control frames to send.
  /// - Returns: the number of payload bytes, and how the WebSocket ended after them; nil while it is open.
  mutating func inflate(
    _ chunk: UnsafeMutableRawBufferPointer, into room: UnsafeMutableRawBufferPointer, answers: inout [UInt8]
  ) -> (count: Int, ending: WebSocketEnding?) {
    guard let messages else { return (0, nil) }
    var count = 0
    var ending: WebSocketEnding?
    do {
      count = try unsafe messages.goOn(into: room)
    } catch {
      session.fail(error, output: &answers) { if case .end(let end) = $0 { ending = end } }
    }
    guard !messages.isBlocked, ending == nil else { return (count, ending) }
    func take(_ bytes: UnsafeMutableRawBufferPointer, _ session: inout WebSocketSession) -> Int {
      unsafe session.receive(partOf: bytes, now: 0, output: &answers) { action throws(WebSocketError) in
        switch action {
        case .part(_, let part, _, let isLast, let isCompressed):
          let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: room[count...])
          count += try unsafe messages.take(part, isCompressed: isCompressed, isLast: isLast, into: rest)
        case .end(let end): ending = end
        }
        return !messages.isBlocked
      }
    }
    if early.isEmpty {
      let taken = unsafe take(chunk, &session)
      early = unsafe Array(chunk[taken...])
    } else {
      var bytes = early
      let taken = unsafe bytes.withUnsafeMutableBytes { unsafe take($0, &session) }
      early = Array(bytes[taken...])
    }
    return (count, ending)
  }

  /// Closes the WebSocket for the broker. Returns the Close frame.
  mutating func close() -> [UInt8] {
    var frame: [UInt8] = []
    session.close(.normal, now: 0, output: &frame)
    return frame
  }
}

extension ReadResult {
  /// How a stream reports the end of the WebSocket over it.
  init(_ ending: WebSocketEnding, at peer: SocketAddress) {
    let action = "read from \(peer)"
    switch ending.code {
    case _ where ending.isViolation:
      self = .failed(
        IOError(
          action: action, fault: .violation,
          reason: "\(ending.reason) (WebSocket close code \(ending.code))"))
    case .normal, .goingAway, .noStatus: self = .end
    default:
      let reason = ending.reason.isEmpty ? "" : ": \(ending.reason)"
      self = .failed(
        IOError(
          action: action, code: ECONNABORTED,
          reason: "the client has closed the WebSocket with \(ending.code)\(reason)"))
    }
  }
}
