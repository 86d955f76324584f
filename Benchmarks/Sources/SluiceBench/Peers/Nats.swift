/// NATS core: `PUB subject size` and `MSG subject sid size`, at most once, no confirmations.
struct NatsDriver: LoadDriver {
  let target: LoadTarget

  func openPublisher(_ index: Int) throws -> Opened<NatsPublisher> {
    Opened(try greet(), NatsPublisher(target, index))
  }

  func openSubscriber() throws -> Opened<NatsSubscriber> {
    var handshake = try greet()
    try handshake.send("SUB \(target.topic) 1\r\nPING\r\n")
    try Self.expectPong(&handshake)
    return Opened(handshake, NatsSubscriber(target))
  }

  /// Opens a connection and logs in.
  func greet() throws -> Handshake {
    var handshake = try Handshake(target)
    let info = try handshake.readLine()
    guard info.hasPrefix("INFO ") else { throw BenchError("not a NATS server: \(info.prefix(80))") }
    let login = target.login.map { ",\"user\":\"\($0.user)\",\"pass\":\"\($0.password)\"" } ?? ""
    try handshake.send(
      "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false\(login)}\r\nPING\r\n")
    try Self.expectPong(&handshake)
    return handshake
  }

  static func expectPong(_ handshake: inout Handshake) throws {
    let line = try handshake.readLine()
    guard line == "PONG" else { throw BenchError("NATS said \(line)") }
  }
}

struct NatsPublisher: TemplateCodec {
  var replies = Replies()
  let template: BatchTemplate

  init(_ target: LoadTarget, _ index: Int) {
    template = BatchTemplate(
      publisher: index, target, prefix: Array("PUB \(target.topic) \(target.size)\r\n".utf8),
      suffix: [13, 10])
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    try NatsControl.take(bytes, from: 0, replies: &replies)
  }
}

struct NatsSubscriber: SubscriberCodec {
  var replies = Replies()
  private let records: FixedRecords

  init(_ target: LoadTarget) {
    records = FixedRecords(
      prefix: Array("MSG \(target.topic) 1 \(target.size)\r\n".utf8), payloadSize: target.size, suffixSize: 2)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    var position = 0
    while true {
      records.take(bytes, from: &position, into: &sink)
      if position == bytes.count || records.mayBegin(bytes, at: position) { return position }
      let next = try NatsControl.take(bytes, from: position, replies: &replies)
      if next == position { return position }
      position = next
    }
  }
}

/// Messages of a NATS server other than records.
enum NatsControl {
  /// Handles whole control lines from `position` on, up to other data. Returns the position after them.
  static func take(_ bytes: UnsafeRawBufferPointer, from start: Int, replies: inout Replies) throws -> Int {
    var position = start
    while position < bytes.count, let length = TextLine.length(bytes, at: position) {
      switch bytes[position] {
      case UInt8(ascii: "P"):
        if bytes[position + 1] == UInt8(ascii: "I") { replies.append(Array("PONG\r\n".utf8)) }
      case UInt8(ascii: "I"), UInt8(ascii: "+"): break
      case UInt8(ascii: "M"): return position
      default: throw BenchError("NATS said \(TextLine.text(bytes, at: position))")
      }
      position += length
    }
    return position
  }
}
