/// Any MQTT 3.1.1 server: QoS 0, clean sessions, no keepalive.
struct MqttDriver: LoadDriver {
  let target: LoadTarget

  func openPublisher(_ index: Int) throws -> Opened<MqttPublisher> {
    Opened(try Mqtt.connect(target), MqttPublisher(target, index))
  }

  func openSubscriber() throws -> Opened<MqttSubscriber> {
    Opened(try Mqtt.subscribe(target, quality: 0), MqttSubscriber(target))
  }
}

/// Any MQTT 3.1.1 server with QoS 1: the server confirms each record of a publisher, and each subscriber confirms each record to the server.
struct MqttConfirmedDriver: LoadDriver {
  let target: LoadTarget

  func openPublisher(_ index: Int) throws -> Opened<MqttConfirmedPublisher> {
    Opened(try Mqtt.connect(target), MqttConfirmedPublisher(target, index))
  }

  func openSubscriber() throws -> Opened<MqttConfirmedSubscriber> {
    Opened(try Mqtt.subscribe(target, quality: 1), MqttConfirmedSubscriber(target))
  }
}

struct MqttPublisher: TemplateCodec {
  var replies = Replies()
  let template: BatchTemplate

  init(_ target: LoadTarget, _ index: Int) {
    template = BatchTemplate(publisher: index, target, prefix: Mqtt.publishPrefix(target))
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    throw BenchError("the MQTT server sent a publisher packet type \(bytes[0] >> 4)")
  }
}

struct MqttSubscriber: SubscriberCodec {
  var replies = Replies()
  private let records: FixedRecords

  init(_ target: LoadTarget) {
    records = FixedRecords(prefix: Mqtt.publishPrefix(target), payloadSize: target.size, suffixSize: 0)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    try records.takeAll(bytes, into: &sink) { "the MQTT server sent a packet of type \(bytes[$0] >> 4)" }
  }
}

/// Batches of the template with a packet identifier written into each record.
struct MqttConfirmedPublisher: PublisherCodec {
  var replies = Replies()
  private(set) var confirmed: UInt64 = 0
  var acknowledged: UInt64? { confirmed }
  private let template: BatchTemplate

  init(_ target: LoadTarget, _ index: Int) {
    template = BatchTemplate(
      publisher: index, target, prefix: Mqtt.publishPrefix(target, quality: 1) + [0, 0])
  }

  mutating func encode(first: UInt64, count: Int, stamp: UInt64) -> UnsafeRawBufferPointer {
    var place = template.buffer.base + template.headerSize + template.payloadOffset - 2
    for number in first..<first + UInt64(count) {
      // From 1 to 65,535. The load's window ensures that records in flight have different identifiers.
      place.storeBytes(of: UInt16(number % 65_535 + 1).bigEndian, as: UInt16.self)
      place += template.stride
    }
    return template.fill(first: first, count: count, stamp: stamp)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    var position = 0
    while bytes.count - position >= 4 {
      guard bytes[position] == 0x40, bytes[position + 1] == 2 else {
        throw BenchError("the MQTT server sent a publisher packet type \(bytes[position] >> 4)")
      }
      confirmed += 1
      position += 4
    }
    return position
  }
}

struct MqttConfirmedSubscriber: SubscriberCodec {
  var replies = Replies()
  private let prefix: BytePattern
  private let stride: Int

  init(_ target: LoadTarget) {
    let prefix = Mqtt.publishPrefix(target, quality: 1)
    self.prefix = BytePattern(prefix)
    stride = prefix.count + 2 + target.size
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    let base = bytes.baseAddress!
    var position = 0
    var confirmations: [UInt8] = []
    confirmations.reserveCapacity(bytes.count / stride * 4)
    while bytes.count - position >= stride, prefix.matches(base + position) {
      let identifier = position + prefix.count
      sink.record(base + identifier + 2)
      confirmations.append(0x40)
      confirmations.append(2)
      confirmations.append(bytes[identifier])
      confirmations.append(bytes[identifier + 1])
      position += stride
    }
    replies.append(confirmations)
    guard
      position == bytes.count || prefix.couldMatch(base + position, available: bytes.count - position)
    else { throw BenchError("the MQTT server sent a packet of type \(bytes[position] >> 4)") }
    return position
  }
}

/// The encoding of MQTT 3.1.1.
enum Mqtt {
  static func connect(_ target: LoadTarget) throws -> Handshake {
    var handshake = try Handshake(target)
    // Protocol level 4, clean session, keepalive 0, an empty client ID: the server generates one.
    let body = string("MQTT") + [4, 2, 0, 0] + string("")
    try handshake.send([0x10] + length(body.count) + body)
    let answer = try handshake.read(4)
    guard answer == [0x20, 2, 0, 0] else {
      throw BenchError("the MQTT server refused the connection: \(answer)")
    }
    return handshake
  }

  static func subscribe(_ target: LoadTarget, quality: UInt8) throws -> Handshake {
    var handshake = try connect(target)
    let body = [0, 1] + string(target.topic) + [quality]
    try handshake.send([0x82] + length(body.count) + body)
    let answer = try handshake.read(5)
    guard answer == [0x90, 3, 0, 1, quality] else {
      throw BenchError("the MQTT server refused the subscription: \(answer)")
    }
    return handshake
  }

  static func string(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)] + bytes
  }

  /// A remaining length: seven bits per byte, the lowest first.
  static func length(_ value: Int) -> [UInt8] {
    var rest = value
    var bytes: [UInt8] = []
    repeat {
      bytes.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
      rest >>= 7
    } while rest > 0
    return bytes
  }

  /// The bytes of a PUBLISH before its packet identifier or, with QoS 0, before its payload.
  static func publishPrefix(_ target: LoadTarget, quality: UInt8 = 0) -> [UInt8] {
    let topic = string(target.topic)
    return [0x30 | quality << 1] + length(topic.count + (quality > 0 ? 2 : 0) + target.size) + topic
  }
}
