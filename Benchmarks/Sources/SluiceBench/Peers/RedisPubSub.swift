/// Redis PUBLISH and SUBSCRIBE, pipelined. Each PUBLISH answers how many subscribers it reached: that is checked.
struct RedisPubSubDriver: LoadDriver {
  private let target: LoadTarget

  init(_ target: LoadTarget) {
    self.target = target
  }

  func openPublisher(_ index: Int) throws -> Opened<RedisPublisher> {
    let prefix = "*3\r\n$7\r\nPUBLISH\r\n" + Resp.bulk(target.topic) + "$\(target.size)\r\n"
    return Opened(
      try Handshake(target),
      RedisPublisher(target, index, prefix: prefix, expected: ":\(target.subscribers)\r\n"))
  }

  func openSubscriber() throws -> Opened<RedisSubscriber> {
    var handshake = try Handshake(target)
    try handshake.send("*2\r\n$9\r\nSUBSCRIBE\r\n" + Resp.bulk(target.topic))
    for expected in ["*3", "$9", "subscribe", "$\(target.topic.utf8.count)", target.topic, ":1"] {
      let line = try handshake.readLine()
      guard line == expected else { throw BenchError("Redis said \(line)") }
    }
    return Opened(handshake, RedisSubscriber(target))
  }
}

/// Commands that each carry one record, and answers that each confirm one.
struct RedisPublisher: PublisherCodec {
  var replies = Replies()
  var acknowledged: UInt64? { confirmed }
  private var confirmed: UInt64 = 0
  private let template: BatchTemplate
  private let index: Int
  private let expected: BytePattern?

  /// - Parameter expected: the answer to every command when it is always the same, else nil: then any bulk string is right.
  init(_ target: LoadTarget, _ index: Int, prefix: String, expected: String?) {
    self.index = index
    self.expected = expected.map { BytePattern($0) }
    template = BatchTemplate(
      prefix: Array(prefix.utf8), payloadSize: target.size, suffix: [13, 10], capacity: target.batch)
  }

  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    template.fill(publisher: index, first: first, count: count, stamp: stamp)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    var position = 0
    if let expected {
      while bytes.count - position >= expected.count, expected.matches(bytes.baseAddress! + position) {
        position += expected.count
        confirmed += 1
      }
      if position == bytes.count
        || expected.couldMatch(bytes.baseAddress! + position, available: bytes.count - position)
      {
        return position
      }
    }
    while position < bytes.count, let head = TextLine.length(bytes, at: position) {
      guard expected == nil, bytes[position] == UInt8(ascii: "$") else {
        throw BenchError("Redis answered \(TextLine.text(bytes, at: position, length: head))")
      }
      guard position + head < bytes.count, let body = TextLine.length(bytes, at: position + head) else {
        break
      }
      position += head + body
      confirmed += 1
    }
    return position
  }
}

struct RedisSubscriber: SubscriberCodec {
  var replies = Replies()
  private let records: FixedRecords

  init(_ target: LoadTarget) {
    let prefix = "*3\r\n$7\r\nmessage\r\n" + Resp.bulk(target.topic) + "$\(target.size)\r\n"
    records = FixedRecords(prefix: Array(prefix.utf8), payloadSize: target.size, suffixSize: 2)
  }

  mutating func receive<Sink: RecordSink>(_ bytes: UnsafeRawBufferPointer, into sink: inout Sink) throws
    -> Int
  {
    var position = 0
    records.take(bytes, from: &position, into: &sink)
    if position < bytes.count, !records.mayBegin(bytes, at: position) {
      let length = TextLine.length(bytes, at: position) ?? bytes.count - position
      throw BenchError("Redis sent \(TextLine.text(bytes, at: position, length: length))")
    }
    return position
  }
}

/// The serialisation protocol of Redis.
enum Resp {
  static func bulk(_ text: String) -> String {
    "$\(text.utf8.count)\r\n\(text)\r\n"
  }
}
