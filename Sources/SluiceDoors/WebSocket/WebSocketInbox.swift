import Glibc
import SluiceIO
import SluiceWebSocket

/// What a client's WebSocket sends: the payloads of its messages, which are unpacked in the memory that they came in. With a client that compresses its messages,
/// they are inflated to where they are read.
struct WebSocketInbox {
  private var session: WebSocketSession
  /// Bytes of frames that aren't unpacked yet: they came with the request, or in front of them is more than there was room for.
  private var early: [UInt8] = []
  /// Nil where messages aren't compressed.
  private let messages: WebSocketMessageReader?

  /// - Parameter inflaters: nil where messages aren't compressed.
  init(_ inflaters: InflaterPool? = nil) {
    messages = inflaters.map { WebSocketMessageReader($0) }
    // Nothing of a message is held here, and the native protocol has limits of its own. It has PING, too.
    let limits = WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1)
    session = WebSocketSession(
      .server,
      WebSocketSession.Rules(
        limits: limits, takesText: false, compression: inflaters != nil, pingAfter: 0), now: 0)
  }

  /// Whether messages are to be unpacked by ``inflate(_:into:answers:)``.
  var isCompressed: Bool { messages != nil }

  /// Whether something can be read before more has come.
  var hasEarly: Bool { !early.isEmpty || messages?.isBlocked == true }

  var heldBytes: Int { early.count + session.heldBytes + (messages?.heldBytes ?? 0) }

  /// Appends bytes that came with the request.
  mutating func append(early bytes: [UInt8]) { early += bytes }

  /// Copies bytes that came with the request to where bytes are read. Returns how many.
  mutating func takeEarly(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(early.count, buffer.count)
    unsafe buffer.copyBytes(from: early[..<count])
    early.removeFirst(count)
    return count
  }

  /// Moves the payloads of messages to the front of the memory that they came in.
  ///
  /// - Parameter answers: control frames to be sent are appended.
  /// - Returns: how many bytes there are then, and how the WebSocket has ended behind them; nil while it is open.
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
        // A payload never stands before what was moved to the front.
        unsafe memmove(base + count, start, part.count)
        count += part.count
      case .end(let end): ending = end
      }
    }
    return (count, ending)
  }

  /// Puts the bytes of messages, inflated where they are compressed, where they are read, as far as there is room. The rest is kept as it came.
  ///
  /// - Parameters:
  ///   - chunk: what has come; empty while ``hasEarly``.
  ///   - answers: control frames to be sent are appended.
  /// - Returns: how many bytes there are then, and how the WebSocket has ended behind them; nil while it is open.
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

  /// The broker closes the WebSocket. Returns the frame that says so.
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
