/// Redis PUBLISH and SUBSCRIBE, pipelined. The answer to PUBLISH is the number of subscribers that it reached, which is checked.
struct RedisPubSubDriver: LoadDriver {
  let target: LoadTarget

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
struct RedisPublisher: TemplateCodec {
  var replies = Replies()
  var acknowledged: UInt64? { confirmed }
  private var confirmed: UInt64 = 0
  let template: BatchTemplate
  private let expected: BytePattern?

  /// - Parameter expected: the answer to every command if it is always the same; nil to accept any bulk string.
  init(_ target: LoadTarget, _ index: Int, prefix: String, expected: String?) {
    self.expected = expected.map { BytePattern($0) }
    template = BatchTemplate(publisher: index, target, prefix: Array(prefix.utf8), suffix: [13, 10])
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
        throw BenchError("Redis answered \(TextLine.text(bytes, at: position))")
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

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    try records.takeAll(bytes, into: &sink) { "Redis sent \(TextLine.text(bytes, at: $0))" }
  }
}

/// The serialisation protocol of Redis.
enum Resp {
  static func bulk(_ text: String) -> String {
    "$\(text.utf8.count)\r\n\(text)\r\n"
  }
}
