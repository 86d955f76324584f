/// Mosquitto: MQTT 3.1.1, QoS 0, clean sessions, no keepalive.
struct MosquittoDriver: LoadDriver {
  let target: LoadTarget

  func openPublisher(_ index: Int) throws -> Opened<MqttPublisher> {
    Opened(try connect(), MqttPublisher(target, index))
  }

  func openSubscriber() throws -> Opened<MqttSubscriber> {
    var handshake = try connect()
    let body = [0, 1] + Mqtt.string(target.topic) + [0]
    try handshake.send([0x82] + Mqtt.length(body.count) + body)
    let answer = try handshake.read(5)
    guard answer == [0x90, 3, 0, 1, 0] else {
      throw BenchError("Mosquitto refused the subscription: \(answer)")
    }
    return Opened(handshake, MqttSubscriber(target))
  }

  private func connect() throws -> Handshake {
    var handshake = try Handshake(target)
    // Protocol level 4, clean session, keepalive 0, an empty client id: the server makes one up.
    let body = Mqtt.string("MQTT") + [4, 2, 0, 0] + Mqtt.string("")
    try handshake.send([0x10] + Mqtt.length(body.count) + body)
    let answer = try handshake.read(4)
    guard answer == [0x20, 2, 0, 0] else { throw BenchError("Mosquitto refused the connection: \(answer)") }
    return handshake
  }
}

struct MqttPublisher: TemplateCodec {
  var replies = Replies()
  let template: BatchTemplate

  init(_ target: LoadTarget, _ index: Int) {
    template = BatchTemplate(publisher: index, target, prefix: Mqtt.publishPrefix(target))
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer) throws -> Int {
    throw BenchError("Mosquitto sent a publisher packet type \(bytes[0] >> 4)")
  }
}

struct MqttSubscriber: SubscriberCodec {
  var replies = Replies()
  private let records: FixedRecords

  init(_ target: LoadTarget) {
    records = FixedRecords(prefix: Mqtt.publishPrefix(target), payloadSize: target.size, suffixSize: 0)
  }

  mutating func receive(_ bytes: UnsafeRawBufferPointer, into sink: inout some RecordSink) throws -> Int {
    try records.takeAll(bytes, into: &sink) { "Mosquitto sent a packet of type \(bytes[$0] >> 4)" }
  }
}

/// The encoding of MQTT 3.1.1.
enum Mqtt {
  static func string(_ text: String) -> [UInt8] {
    let bytes = Array(text.utf8)
    return [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xff)] + bytes
  }

  /// A remaining length: seven bits a byte, the lowest first.
  static func length(_ value: Int) -> [UInt8] {
    var rest = value
    var bytes: [UInt8] = []
    repeat {
      bytes.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
      rest >>= 7
    } while rest > 0
    return bytes
  }

  /// All of a QoS 0 PUBLISH before its payload.
  static func publishPrefix(_ target: LoadTarget) -> [UInt8] {
    let topic = string(target.topic)
    return [0x30] + length(topic.count + target.size) + topic
  }
}
