/// Parses the server's bytes, in chunks of any size.
///
/// ```text
/// INFO {…}⏎   MSG subject sid [reply] size⏎payload⏎   HMSG subject sid [reply] headersize totalsize⏎headers payload⏎
/// PING⏎   PONG⏎   +OK⏎   -ERR 'text'⏎
/// ```
///
/// An operation within one chunk is passed on in place. Otherwise, each byte of it is copied once. Memory is bounded by ``maximumLine`` and
/// ``maximumPayload``: the server's sizes are checked before memory is used for them.
public struct NATSParser {
  /// The longest line, including its end. INFO is the longest; the server limits lines of messages to 4,096 bytes by default.
  public static let maximumLine = 64 << 10
  /// The most bytes of a message's headers and payload together. The caller sets it to the server's `max_payload`.
  public var maximumPayload: Int

  /// The beginning of an operation that isn't complete.
  private var pending: [UInt8] = []
  /// The operation of a complete line whose payload isn't complete.
  private var waiting: Shape?

  /// - Parameter maximumPayload: see ``maximumPayload``.
  public init(maximumPayload: Int = 1 << 20) {
    self.maximumPayload = maximumPayload
  }

  /// The number of stored bytes of an incomplete operation.
  public var pendingCount: Int { pending.count }

  /// Passes on the operations that `chunk` completes, in order, until `body` returns false.
  ///
  /// - Returns: the number of bytes of `chunk` that were used: all of them unless `body` has returned false.
  /// - Throws: ``NATSError/Code-swift.struct/protocolViolation``. The parser can't be used after that.
  public mutating func parse(
    _ chunk: NATSBytes, _ body: (NATSOperation) throws(NATSError) -> Bool
  ) throws(NATSError) -> Int {
    var position = 0
    if !pending.isEmpty {
      guard let (taken, goesOn) = try finishPending(chunk, body) else { return chunk.count }
      position = taken
      if !goesOn { return position }
    }
    while position < chunk.count {
      let rest = chunk.dropFirst(position)
      guard let end = rest.firstIndex(of: 0x0A) else {
        try keep(rest, of: nil)
        return chunk.count
      }
      let shape = try Shape(rest[0..<end + 1], maximumPayload: maximumPayload)
      guard rest.count >= shape.total else {
        try keep(rest, of: shape)
        return chunk.count
      }
      position += shape.total
      guard try body(try shape.operation(in: rest[0..<shape.total])) else { return position }
    }
    return position
  }

  private mutating func keep(_ rest: NATSBytes, of shape: Shape?) throws(NATSError) {
    guard shape != nil || rest.count < Self.maximumLine else { throw Self.lineTooLong }
    if let shape { pending.reserveCapacity(shape.total) }
    unsafe pending.append(contentsOf: rest.memory)
    waiting = shape
  }

  /// Completes the operation that was begun before this chunk.
  ///
  /// - Returns: the number of bytes used, and whether to continue; nil if the operation still isn't complete.
  private mutating func finishPending(
    _ chunk: NATSBytes, _ body: (NATSOperation) throws(NATSError) -> Bool
  ) throws(NATSError) -> (Int, Bool)? {
    var taken = 0
    let shape: Shape
    if let waiting {
      shape = waiting
    } else {
      let end = chunk.firstIndex(of: 0x0A)
      taken = end.map { $0 + 1 } ?? chunk.count
      guard pending.count + taken <= Self.maximumLine else { throw Self.lineTooLong }
      unsafe pending.append(contentsOf: chunk[0..<taken].memory)
      if end == nil { return nil }
      shape = try withPending { line throws(NATSError) in try Shape(line, maximumPayload: maximumPayload) }
      waiting = shape
      if shape.total > pending.count { pending.reserveCapacity(shape.total) }
    }
    let missing = min(shape.total - pending.count, chunk.count - taken)
    unsafe pending.append(contentsOf: chunk[taken..<taken + missing].memory)
    taken += missing
    guard pending.count == shape.total else { return nil }
    let goesOn = try withPending { bytes throws(NATSError) in try body(try shape.operation(in: bytes)) }
    waiting = nil
    pending.removeAll(keepingCapacity: pending.capacity <= 64 << 10)
    return (taken, goesOn)
  }

  private func withPending<Result>(_ body: (NATSBytes) throws(NATSError) -> Result) throws(NATSError)
    -> Result
  {
    try pending.withBytes(body)
  }

  private static var lineTooLong: NATSError {
    .violation("a line is longer than \(maximumLine) bytes")
  }
}

/// The content of a line that begins an operation: its kind, and the positions of its parts.
private struct Shape {
  private enum Kind {
    case info(Range<Int>)
    case message(Message)
    case ping, pong, ok
    case error(Range<Int>)
  }

  private struct Message {
    var subject: Range<Int>
    var subscription: UInt64
    var reply: Range<Int>?
    var headers = 0
  }

  private let kind: Kind
  /// The length of the line with its end.
  private let line: Int
  /// The length of headers and payload.
  private var body = 0
  /// The length including the line, and the line break after a payload.
  var total: Int {
    if case .message = kind { line + body + 2 } else { line }
  }

  /// - Parameter text: the line with its end.
  init(_ text: NATSBytes, maximumPayload: Int) throws(NATSError) {
    line = text.count
    guard line <= NATSParser.maximumLine else {
      throw .violation("a line is longer than \(NATSParser.maximumLine) bytes")
    }
    guard line >= 2, text[line - 2] == 0x0D else { throw .violation("a line doesn't end in CR LF") }
    let end = line - 2
    var name = 0
    while name < end, !isBlank(text[name]) { name += 1 }
    let arguments = Self.trim(name..<end, of: text)
    switch Self.word(text, name) {
    case "INFO":
      kind = .info(arguments)
    case "MSG":
      let parts = try Self.split(arguments, of: text, counts: 3...4)
      kind = .message(try Self.message(parts, of: text))
      body = try Self.size(parts[parts.count - 1], of: text, limit: maximumPayload)
    case "HMSG":
      let parts = try Self.split(arguments, of: text, counts: 4...5)
      body = try Self.size(parts[parts.count - 1], of: text, limit: maximumPayload)
      let headers = try Self.size(parts[parts.count - 2], of: text, limit: body)
      var message = try Self.message(parts.dropLast(), of: text)
      message.headers = headers
      guard headers > 0 else { throw .violation("a message with headers has none") }
      kind = .message(message)
    case "PING": kind = .ping
    case "PONG": kind = .pong
    case "+OK": kind = .ok
    case "-ERR":
      var range = arguments
      if range.count >= 2, text[range.lowerBound] == 0x27, text[range.upperBound - 1] == 0x27 {
        range = range.lowerBound + 1..<range.upperBound - 1
      }
      kind = .error(range)
    default:
      throw .violation("a line begins with '\(NATSError.bounded(text[0..<min(end, 40)].text))'")
    }
  }

  /// The first word in capitals. A word that is longer than all known ones is cut, so that it matches none.
  private static func word(_ text: NATSBytes, _ end: Int) -> String {
    var word = ""
    for index in 0..<min(end, 5) {
      let byte = text[index]
      let isSmall = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
      word.unicodeScalars.append(Unicode.Scalar(isSmall ? byte - 0x20 : byte))
    }
    return word
  }

  private static func trim(_ range: Range<Int>, of text: NATSBytes) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, isBlank(text[start]) { start += 1 }
    while end > start, isBlank(text[end - 1]) { end -= 1 }
    return start..<end
  }

  private static func split(
    _ range: Range<Int>, of text: NATSBytes, counts: ClosedRange<Int>
  ) throws(NATSError) -> Parts {
    var parts = Parts()
    var index = range.lowerBound
    while index < range.upperBound {
      let start = index
      while index < range.upperBound, !isBlank(text[index]) { index += 1 }
      guard parts.count < counts.upperBound else { throw .violation("a message's line has too many words") }
      parts.append(start..<index)
      while index < range.upperBound, isBlank(text[index]) { index += 1 }
    }
    guard counts.contains(parts.count) else { throw .violation("a message's line has too few words") }
    return parts
  }

  /// Up to five ranges, without an allocation.
  private struct Parts {
    private var ranges = (0..<0, 0..<0, 0..<0, 0..<0, 0..<0)
    private(set) var count = 0

    mutating func append(_ range: Range<Int>) {
      switch count {
      case 0: ranges.0 = range
      case 1: ranges.1 = range
      case 2: ranges.2 = range
      case 3: ranges.3 = range
      default: ranges.4 = range
      }
      count += 1
    }

    subscript(index: Int) -> Range<Int> {
      switch index {
      case 0: ranges.0
      case 1: ranges.1
      case 2: ranges.2
      case 3: ranges.3
      default: ranges.4
      }
    }

    func dropLast() -> Parts {
      var shorter = self
      shorter.count -= 1
      return shorter
    }
  }

  /// - Parameter parts: the subject, the subscription's number, an optional subject for the answer, and a size.
  private static func message(_ parts: Parts, of text: NATSBytes) throws(NATSError) -> Message {
    guard let number = text[parts[1]].number else {
      throw .violation("'\(NATSError.bounded(text[parts[1]].text))' is no subscription's number")
    }
    return Message(
      subject: parts[0], subscription: UInt64(number), reply: parts.count == 4 ? parts[2] : nil)
  }

  private static func size(_ range: Range<Int>, of text: NATSBytes, limit: Int) throws(NATSError) -> Int {
    guard let size = text[range].number else {
      throw .violation("'\(NATSError.bounded(text[range].text))' is no size of a message")
    }
    guard size <= limit else {
      throw .violation("a message or its headers have \(size) bytes where at most \(limit) are possible")
    }
    return size
  }

  /// - Parameter bytes: ``total`` bytes.
  func operation(in bytes: NATSBytes) throws(NATSError) -> NATSOperation {
    switch kind {
    case .info(let range): return .info(bytes[range])
    case .ping: return .ping
    case .pong: return .pong
    case .ok: return .ok
    case .error(let range): return .error(bytes[range])
    case .message(let message):
      guard bytes[total - 2] == 0x0D, bytes[total - 1] == 0x0A else {
        throw .violation("a message has another length than its line states")
      }
      var headers: NATSHeadersView?
      if message.headers > 0 {
        let block = bytes[line..<line + message.headers]
        guard NATSHeadersView.isValid(block) else { throw .violation("a message's headers are malformed") }
        headers = NATSHeadersView(block)
      }
      return .message(
        NATSMessageView(
          subject: bytes[message.subject], subscription: message.subscription,
          reply: message.reply.map { bytes[$0] }, headers: headers,
          payload: bytes[line + message.headers..<line + body]))
    }
  }
}
