/// The content of a stream of frames, in the order of arrival. Memory is valid during the call only.
@safe
package enum WebSocketEvent {
  /// A part of a message, unmasked in place: wherever the transport and the frames cut it. The parts of a message follow each other, with
  /// control frames between; an empty message is one empty part. Parts of a compressed message are as they came, and text in them isn't checked.
  case part(isText: Bool, UnsafeRawBufferPointer, isFirst: Bool, isLast: Bool, isCompressed: Bool)
  case ping(UnsafeRawBufferPointer)
  case pong(UnsafeRawBufferPointer)
  /// The code is ``WebSocketCloseCode/noStatus`` where the frame has none. The reason is valid UTF-8.
  case close(WebSocketCloseCode, reason: UnsafeRawBufferPointer)
}

/// Takes a stream of frames apart, wherever the transport happened to cut it.
///
/// Payloads are handed out as they come, in place: the decoder holds a head or a control frame that is cut in two, 139 bytes at most, and no part
/// of a message.
package struct WebSocketDecoder: Sendable {
  /// The longest payload of one frame and of one message, in bytes.
  package struct Limits: Hashable, Sendable {
    package var frame: UInt64
    package var message: UInt64

    package init(frame: UInt64, message: UInt64) {
      self.frame = frame
      self.message = message
    }
  }

  private let side: WebSocketSide
  private let limits: Limits
  /// Whether messages may be compressed.
  private let compression: Bool

  /// The start of a head that isn't complete, or a control frame's payload that isn't.
  private var held: [UInt8] = []
  /// The frame whose payload is under way.
  private var frame: WebSocketFrameHead?
  /// Bytes of its payload that are still to come.
  private var missing: UInt64 = 0
  /// The message under way, which the next data frame continues.
  private var message: Message?
  private var isClosed = false

  private struct Message: Hashable {
    var isText: Bool
    var isCompressed = false
    /// Whether a part of it has been handed out.
    var hasBegun = false
    /// The length of all its frames so far.
    var length: UInt64 = 0
    var text = UTF8Validator()
  }

  /// - Parameters:
  ///   - side: the side that reads.
  ///   - limits: of payloads as they come: of a compressed message before it is inflated.
  ///   - compression: whether permessage-deflate was agreed on.
  package init(_ side: WebSocketSide, limits: Limits, compression: Bool = false) {
    self.side = side
    self.limits = limits
    self.compression = compression
  }

  /// Whether the stream may end here without a frame or a message being cut off.
  package var isBetweenMessages: Bool { held.isEmpty && frame == nil && message == nil }

  /// Bytes of memory that are held for what isn't complete.
  package var heldBytes: Int { held.capacity }

  /// Hands out everything that `chunk` has, which is changed in place. Bytes after a Close frame are dropped.
  ///
  /// - Throws: a violation of the protocol, as soon as it can be seen; whatever `body` throws. The decoder isn't usable after that.
  package mutating func decode(
    _ chunk: UnsafeMutableRawBufferPointer, _ body: (WebSocketEvent) throws(WebSocketError) -> Void
  ) throws(WebSocketError) {
    _ = try unsafe decode(partOf: chunk) { event throws(WebSocketError) in
      try body(event)
      return true
    }
  }

  /// The same until `body` returns false: the event before was the last one that it wants now.
  ///
  /// - Returns: how many bytes were decoded. The rest is to be given again.
  package mutating func decode(
    partOf chunk: UnsafeMutableRawBufferPointer, while body: (WebSocketEvent) throws(WebSocketError) -> Bool
  ) throws(WebSocketError) -> Int {
    var rest = unsafe chunk
    while !isClosed {
      guard let head = frame else {
        guard unsafe try readHead(&rest) else { return chunk.count }
        continue
      }
      if head.opcode.isControl {
        guard try unsafe control(head, &rest, body) else { break }
      } else {
        guard try unsafe data(head, &rest, body) else { break }
      }
    }
    return isClosed ? chunk.count : chunk.count - rest.count
  }

  // MARK: Heads

  /// Returns false when the head isn't complete yet.
  private mutating func readHead(_ rest: inout UnsafeMutableRawBufferPointer) throws(WebSocketError) -> Bool {
    if held.isEmpty {
      let bytes = UnsafeRawBufferPointer(rest)
      try unsafe WebSocketFrameHead.checkStart(bytes, at: side, compression: compression)
      let size = unsafe WebSocketFrameHead.size(bytes)
      guard bytes.count >= size else {
        unsafe held.append(contentsOf: rest)
        unsafe rest = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[rest.count...])
        return false
      }
      try unsafe start(WebSocketFrameHead(UnsafeRawBufferPointer(rebasing: bytes[..<size])))
      unsafe rest = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[size...])
      return true
    }
    while true {
      let size = unsafe held.withUnsafeBytes { unsafe WebSocketFrameHead.size($0) }
      if held.count >= max(2, size) { break }
      guard let byte = unsafe rest.first else { return false }
      held.append(byte)
      unsafe rest = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[1...])
      try check(held)
    }
    let head = try Self.head(held)
    held.removeAll(keepingCapacity: true)
    try start(head)
    return true
  }

  private func check(_ bytes: [UInt8]) throws(WebSocketError) {
    try unsafe bytes.withUnsafeBufferPointer { bytes throws(WebSocketError) in
      try unsafe WebSocketFrameHead.checkStart(
        UnsafeRawBufferPointer(bytes), at: side, compression: compression)
    }
  }

  private static func head(_ bytes: [UInt8]) throws(WebSocketError) -> WebSocketFrameHead {
    try unsafe bytes.withUnsafeBufferPointer { bytes throws(WebSocketError) in
      try unsafe WebSocketFrameHead(UnsafeRawBufferPointer(bytes))
    }
  }

  /// Admits a frame by its place among the others and its length.
  private mutating func start(_ head: WebSocketFrameHead) throws(WebSocketError) {
    if !head.opcode.isControl {
      switch (head.opcode, message) {
      case (.continuation, nil):
        throw WebSocketError(.protocolError, "a continuation frame came, but there is no message to continue")
      case (.continuation, _): break
      case (_, nil): message = Message(isText: head.opcode == .text, isCompressed: head.isCompressed)
      default:
        throw WebSocketError(
          .protocolError, "a \(head.opcode) frame came before the message under way was finished")
      }
      guard head.length <= limits.frame else {
        throw WebSocketError(
          .messageTooBig, "a frame of \(head.length) bytes is longer than the limit of \(limits.frame)")
      }
      let length = (message?.length ?? 0) + head.length
      guard length <= limits.message else {
        throw WebSocketError(
          .messageTooBig, "a message of \(length) bytes is longer than the limit of \(limits.message)")
      }
      message?.length = length
    }
    frame = head
    missing = head.length
  }

  // MARK: Payloads

  /// Returns false when the chunk is used up, or `body` wants no more of it.
  private mutating func data(
    _ head: WebSocketFrameHead, _ rest: inout UnsafeMutableRawBufferPointer,
    _ body: (WebSocketEvent) throws(WebSocketError) -> Bool
  ) throws(WebSocketError) -> Bool {
    let count = Int(min(UInt64(rest.count), missing))
    guard count > 0 || missing == 0 else { return false }
    let part = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[..<count])
    unsafe rest = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[count...])
    unsafe frame?.mask?.apply(to: part)
    missing -= UInt64(count)
    let isLast = missing == 0 && head.isFinal
    // The message is there since its first frame was admitted.
    var message = self.message ?? Message(isText: false)
    if message.isText, !message.isCompressed {
      guard unsafe message.text.take(UnsafeRawBufferPointer(part)), !isLast || message.text.isBetweenScalars
      else { throw WebSocketError(.invalidPayload, "a text message isn't valid UTF-8") }
    }
    let isFirst = !message.hasBegun
    if count > 0 || isLast { message.hasBegun = true }
    self.message = isLast ? nil : message
    if missing == 0 { frame = nil }
    guard count > 0 || isLast else { return true }
    return try unsafe body(
      .part(
        isText: message.isText, UnsafeRawBufferPointer(part), isFirst: isFirst, isLast: isLast,
        isCompressed: message.isCompressed))
  }

  /// Returns false when the chunk is used up, or `body` wants no more of it.
  private mutating func control(
    _ head: WebSocketFrameHead, _ rest: inout UnsafeMutableRawBufferPointer,
    _ body: (WebSocketEvent) throws(WebSocketError) -> Bool
  ) throws(WebSocketError) -> Bool {
    let count = Int(min(UInt64(rest.count), missing))
    let part = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[..<count])
    unsafe rest = unsafe UnsafeMutableRawBufferPointer(rebasing: rest[count...])
    unsafe frame?.mask?.apply(to: part)
    missing -= UInt64(count)
    guard missing == 0 else {
      unsafe held.append(contentsOf: part)
      return false
    }
    frame = nil
    guard !held.isEmpty else { return try unsafe emit(head.opcode, UnsafeRawBufferPointer(part), body) }
    unsafe held.append(contentsOf: part)
    var payload: [UInt8] = []
    swap(&payload, &held)
    return try unsafe payload.withUnsafeBufferPointer { bytes throws(WebSocketError) in
      try unsafe emit(head.opcode, UnsafeRawBufferPointer(bytes), body)
    }
  }

  private mutating func emit(
    _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer,
    _ body: (WebSocketEvent) throws(WebSocketError) -> Bool
  ) throws(WebSocketError) -> Bool {
    switch opcode {
    case .ping: return try unsafe body(.ping(payload))
    case .pong: return try unsafe body(.pong(payload))
    default:
      isClosed = true
      guard unsafe !payload.isEmpty else { return try unsafe body(.close(.noStatus, reason: payload)) }
      guard payload.count >= 2 else {
        throw WebSocketError(.protocolError, "a Close frame has one byte; a code has two")
      }
      let code = unsafe WebSocketCloseCode(
        rawValue: UInt16(bigEndian: payload.loadUnaligned(as: UInt16.self)))
      guard code.isAllowedOnWire else {
        throw WebSocketError(.protocolError, "a Close frame has the code \(code), which isn't allowed")
      }
      let reason = unsafe UnsafeRawBufferPointer(rebasing: payload[2...])
      var text = UTF8Validator()
      guard unsafe text.take(reason), text.isBetweenScalars else {
        throw WebSocketError(.invalidPayload, "the reason in a Close frame isn't valid UTF-8")
      }
      return try unsafe body(.close(code, reason: reason))
    }
  }
}
