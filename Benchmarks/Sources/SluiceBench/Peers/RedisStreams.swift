/// Redis streams: pipelined XADD, and readers that request the entries after the last one with XREAD BLOCK.
struct RedisStreamsDriver: LoadDriver {
  static let keepsRecords = true
  let target: LoadTarget

  func prepare() throws {
    try cleanUp()
  }

  func openPublisher(_ index: Int) throws -> Opened<RedisPublisher> {
    let topic = Resp.bulk(target.topic)
    let field = "$1\r\nd\r\n$\(target.size)\r\n"
    let prefix: String
    if let bytes = target.retainedBytes {
      let limit = Resp.bulk("\(max(bytes / target.size, 1))")
      prefix = "*8\r\n$4\r\nXADD\r\n\(topic)$6\r\nMAXLEN\r\n$1\r\n~\r\n\(limit)$1\r\n*\r\n\(field)"
    } else {
      prefix = "*5\r\n$4\r\nXADD\r\n\(topic)$1\r\n*\r\n\(field)"
    }
    return Opened(
      try Handshake(target), RedisPublisher(target, index, prefix: prefix, expected: nil))
  }

  func openSubscriber() throws -> Opened<RedisStreamReader> {
    let handshake = try Handshake(target)
    let reader = RedisStreamReader(target)
    try handshake.send(reader.request(after: "0-0"))
    return Opened(handshake, reader)
  }

  func cleanUp() throws {
    var handshake = try Handshake(target)
    defer { handshake.socket.close() }
    try handshake.send("*2\r\n$6\r\nUNLINK\r\n" + Resp.bulk(target.topic))
    let line = try handshake.readLine()
    guard line.hasPrefix(":") else { throw BenchError("Redis said \(line)") }
  }
}

/// Sends one XREAD after another: the next one when the answer to the last is complete.
struct RedisStreamReader: SubscriberCodec {
  var replies = Replies()
  private let topic: String
  private let count: Int
  private let payloadSize: Int
  /// `*1 *2 topic`, before the number of entries.
  private let opening: BytePattern
  /// Between an entry's id and its payload.
  private let field: BytePattern
  private var entries = 0

  init(_ target: LoadTarget) {
    topic = target.topic
    payloadSize = target.size
    // Answers of about 256 KiB are large enough to make the round trip between them negligible.
    count = max(262_144 / (target.size + 64), 16)
    opening = BytePattern("*1\r\n*2\r\n" + Resp.bulk(target.topic))
    field = BytePattern("\r\n*2\r\n$1\r\nd\r\n$\(target.size)\r\n")
  }

  func request(after id: String) -> String {
    "*8\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n" + Resp.bulk("\(count)")
      + "$5\r\nBLOCK\r\n$1\r\n0\r\n$7\r\nSTREAMS\r\n"
      + Resp.bulk(topic) + Resp.bulk(id)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    let base = bytes.baseAddress!
    var position = 0
    while position < bytes.count {
      if entries == 0 {
        guard let used = try takeOpening(bytes, at: position) else { return position }
        position += used
      }
      // An entry: *2 CRLF $NN CRLF id CRLF *2 CRLF $1 CRLF d CRLF $size CRLF payload CRLF
      guard bytes.count - position >= 9 else { return position }
      let digits = base + position + 5
      let idLength =
        Int(digits.load(as: UInt8.self)) * 10 + Int(digits.load(fromByteOffset: 1, as: UInt8.self)) - 528
      let whole = 9 + idLength + field.count + payloadSize + 2
      guard bytes.count - position >= whole else { return position }
      guard field.matches(base + position + 9 + idLength) else {
        throw BenchError("Redis sent an entry of another form")
      }
      sink.record(base + position + 9 + idLength + field.count)
      entries -= 1
      if entries == 0 {
        let id = UnsafeRawBufferPointer(start: base + position + 9, count: idLength)
        replies.append(Array(request(after: String(decoding: id, as: UTF8.self)).utf8))
      }
      position += whole
    }
    return position
  }

  /// Reads the beginning of an answer up to the number of entries; nil if it isn't complete.
  private mutating func takeOpening(_ bytes: UnsafeRawBufferPointer, at position: Int) throws -> Int? {
    let available = bytes.count - position
    guard opening.couldMatch(bytes.baseAddress! + position, available: available) else {
      throw BenchError("Redis answered \(TextLine.text(bytes, at: position))")
    }
    guard available > opening.count, let line = TextLine.length(bytes, at: position + opening.count) else {
      return nil
    }
    let text = TextLine.text(bytes, at: position + opening.count)
    guard let count = Int(text.dropFirst()), count > 0 else { throw BenchError("Redis answered \(text)") }
    entries = count
    return opening.count + line
  }
}
