/// Sluice's HTTP listener. Publishers send lines by POST and wait for each answer before the next request on their connection, like programs with
/// keep-alive; subscribers read server-sent events.
///
/// Lines are text, so the numbers in a payload are sent as hexadecimal digits, and payloads have at least 32 bytes.
struct HttpDriver: LoadDriver {
  let target: LoadTarget

  func prepare() throws {
    for number in 0..<target.topics { try request("PUT", target.name(of: number)) }
  }

  func cleanUp() throws {
    for number in 0..<target.topics { try request("DELETE", target.name(of: number)) }
  }

  private func request(_ method: String, _ topic: String) throws {
    var handshake = try Handshake(target)
    defer { handshake.socket.close() }
    try handshake.send("\(method) /topics/\(topic) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
    let status = try handshake.readLine()
    guard status.hasPrefix("HTTP/1.1 20") else { throw BenchError("HTTP answered \(status)") }
  }

  func openPublisher(_ index: Int) throws -> Opened<HttpPublisher> {
    try checkSize()
    return Opened(try Handshake(target), HttpPublisher(target, index))
  }

  func openSubscriber() throws -> Opened<EventSubscriber> {
    try checkSize()
    var handshake = try Handshake(target)
    try handshake.send(
      "GET /topics/\(target.topic)?from=new HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")
    let status = try handshake.readLine()
    guard status.hasPrefix("HTTP/1.1 200") else { throw BenchError("HTTP answered \(status)") }
    while try handshake.readLine() != "" {}
    return Opened(handshake, EventSubscriber(target))
  }

  private func checkSize() throws {
    guard target.size >= HttpText.digits else {
      throw UsageError("--size of the driver sluice-http is \(HttpText.digits) and more")
    }
  }
}

/// The first 32 bytes of a payload as text, for the 16 bytes of the other drivers.
enum HttpText {
  static let digits = 32

  static func write(_ word: UInt64, at place: UnsafeMutableRawPointer) {
    for index in 0..<16 {
      let digit = UInt8(truncatingIfNeeded: word >> (60 - 4 * UInt64(index)) & 15)
      place.storeBytes(of: digit + (digit < 10 ? 48 : 87), toByteOffset: index, as: UInt8.self)
    }
  }

  static func read(at place: UnsafeRawPointer) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<16 {
      let digit = place.load(fromByteOffset: index, as: UInt8.self)
      word = word << 4 | UInt64(digit & 15 + (digit > 57 ? 9 : 0))
    }
    return word
  }
}

struct HttpPublisher: PublisherCodec {
  var replies = Replies()
  private(set) var confirmed: UInt64 = 0
  var acknowledged: UInt64? { confirmed }
  /// One request at a time.
  var granted: UInt64 { confirmed + (waiting == 0 ? UInt64(target.batch) : 0) }
  private let target: LoadTarget
  private let publisher: Int
  private let buffer: PinnedBuffer
  /// Records of the request that wasn't answered yet.
  private var waiting: UInt64 = 0

  /// The end of a request's head, so that the body follows directly.
  private static let headRoom = 256

  init(_ target: LoadTarget, _ index: Int) {
    self.target = target
    publisher = index
    let line = (0..<target.size).map { UInt8(truncatingIfNeeded: 0x61 + $0 % 26) } + [10]
    buffer = PinnedBuffer(count: Self.headRoom + line.count * target.batch)
    for number in 0..<target.batch {
      line.withUnsafeBytes {
        let place = buffer.base + Self.headRoom + number * $0.count
        place.copyMemory(from: $0.baseAddress!, byteCount: $0.count)
      }
    }
  }

  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    let stride = target.size + 1
    for number in 0..<count {
      let place = buffer.base + Self.headRoom + number * stride
      HttpText.write(UInt64(publisher) << 48 | (first + UInt64(number)), at: place)
      HttpText.write(stamp, at: place + 16)
    }
    let head = Array(
      """
      POST /topics/\(target.name(of: publisher))?lines HTTP/1.1\r\nHost: 127.0.0.1\r\n\
      Content-Length: \(count * stride)\r\n\r\n
      """.utf8)
    let start = buffer.base + Self.headRoom - head.count
    head.withUnsafeBytes { start.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    waiting = UInt64(count)
    return UnsafeRawBufferPointer(start: start, count: head.count + count * stride)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let end = text.firstRange(of: "\r\n\r\n") else { return 0 }
    let head = text[..<end.lowerBound]
    guard head.hasPrefix("HTTP/1.1 200"),
      let length = head.split(separator: "\r\n").first(where: { $0.hasPrefix("Content-Length: ") }),
      let size = Int(length.dropFirst("Content-Length: ".count))
    else { throw BenchError("HTTP answered \(text)") }
    let whole = text[..<end.upperBound].utf8.count + size
    guard whole <= bytes.count else { return 0 }
    confirmed += waiting
    waiting = 0
    return whole
  }
}

/// Server-sent events of records in JSON, in chunks of whole events.
struct EventSubscriber: SubscriberCodec {
  var replies = Replies()
  private let size: Int
  private let scratch: PinnedBuffer
  /// Bytes of the present chunk that haven't arrived yet.
  private var chunk = 0

  init(_ target: LoadTarget) {
    size = target.size
    scratch = PinnedBuffer(count: target.size)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    let base = bytes.baseAddress!
    var position = 0
    while position < bytes.count {
      if chunk == 0 {
        guard let next = try beginChunk(bytes, at: position) else { return position }
        position = next
      }
      // An event is "id: …\ndata: {…,"payload":"…"}\n\n".
      guard let end = Self.eventEnd(bytes, from: position, upTo: min(position + chunk, bytes.count)) else {
        return position
      }
      let payload = base + end - 4 - size
      scratch.base.storeBytes(of: HttpText.read(at: payload).littleEndian, as: UInt64.self)
      scratch.base.storeBytes(
        of: HttpText.read(at: payload + 16).littleEndian, toByteOffset: 8, as: UInt64.self)
      sink.record(scratch.base)
      chunk -= end - position
      position = end
    }
    return position
  }

  /// - Returns: the position of the chunk's bytes; nil when more bytes are needed.
  private mutating func beginChunk(_ bytes: UnsafeRawBufferPointer, at start: Int) throws -> Int? {
    var position = start
    // The line end after the last chunk.
    if bytes[position] == 13 {
      guard bytes.count - position > 2 else { return nil }
      position += 2
    }
    guard let length = TextLine.length(bytes, at: position) else { return nil }
    guard let size = Int(TextLine.text(bytes, at: position), radix: 16), size > 0 else {
      throw BenchError("HTTP sent '\(TextLine.text(bytes, at: position))' where a chunk begins")
    }
    chunk = size
    return position + length
  }

  private static func eventEnd(_ bytes: UnsafeRawBufferPointer, from start: Int, upTo limit: Int) -> Int? {
    var position = start
    while position + 1 < limit {
      if bytes[position] == 10, bytes[position + 1] == 10 { return position + 2 }
      position += 1
    }
    return nil
  }
}
