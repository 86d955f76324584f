import SluiceMQTT

/// A packet that can be kept and compared.
enum OwnedPacket: Equatable {
  struct Publish: Equatable {
    var topic: String
    var payload: [UInt8]
    var qos = MQTTQoS.atMostOnce
    var packetID: UInt16 = 0
    var isDuplicate = false
    var isRetained = false
    var properties = MQTTProperties()
  }

  case connect(MQTTConnect)
  case connack(MQTTConnack)
  case publish(Publish)
  case acknowledgement(MQTTAcknowledgement)
  case subscribe(MQTTSubscribe)
  case unsubscribe(MQTTUnsubscribe)
  case answers(MQTTFilterAnswers)
  case pingreq
  case pingresp
  case disconnect(MQTTNotice)
  case auth(MQTTNotice)

  init(_ packet: MQTTPacket) {
    switch packet {
    case .connect(let packet): self = .connect(packet)
    case .connack(let packet): self = .connack(packet)
    case .publish(let packet):
      self = .publish(
        Publish(
          topic: String(decoding: packet.topic, as: UTF8.self), payload: Array(packet.payload),
          qos: packet.qos, packetID: packet.packetID, isDuplicate: packet.isDuplicate,
          isRetained: packet.isRetained, properties: MQTTProperties(packet.properties)))
    case .acknowledgement(let packet): self = .acknowledgement(packet)
    case .subscribe(let packet): self = .subscribe(packet)
    case .unsubscribe(let packet): self = .unsubscribe(packet)
    case .answers(let packet): self = .answers(packet)
    case .pingreq: self = .pingreq
    case .pingresp: self = .pingresp
    case .disconnect(let packet): self = .disconnect(packet)
    case .auth(let packet): self = .auth(packet)
    }
  }

  func encoded(_ version: MQTTVersion) -> [UInt8] {
    var bytes: [UInt8] = []
    switch self {
    case .connect(let packet): MQTTPacket.connect(packet).encode(into: &bytes, version)
    case .connack(let packet): MQTTPacket.connack(packet).encode(into: &bytes, version)
    case .publish(let packet):
      Array(packet.topic.utf8).withUnsafeBytes { topic in
        packet.payload.withUnsafeBytes { payload in
          packet.properties.withView { view in
            MQTTPublish(
              topic: topic, payload: payload, qos: packet.qos, packetID: packet.packetID,
              isDuplicate: packet.isDuplicate, isRetained: packet.isRetained, properties: view
            ).encode(into: &bytes, version)
          }
        }
      }
    case .acknowledgement(let packet): MQTTPacket.acknowledgement(packet).encode(into: &bytes, version)
    case .subscribe(let packet): MQTTPacket.subscribe(packet).encode(into: &bytes, version)
    case .unsubscribe(let packet): MQTTPacket.unsubscribe(packet).encode(into: &bytes, version)
    case .answers(let packet): MQTTPacket.answers(packet).encode(into: &bytes, version)
    case .pingreq: MQTTPacket.pingreq.encode(into: &bytes, version)
    case .pingresp: MQTTPacket.pingresp.encode(into: &bytes, version)
    case .disconnect(let packet): MQTTPacket.disconnect(packet).encode(into: &bytes, version)
    case .auth(let packet): MQTTPacket.auth(packet).encode(into: &bytes, version)
    }
    return bytes
  }

  /// All packets in some bytes, starting anywhere in a connection.
  static func all(
    in bytes: [UInt8], _ version: MQTTVersion, from sender: MQTTSender
  ) throws -> [OwnedPacket] {
    let collector = PacketCollector(version, from: sender)
    let packets = try bytes.withUnsafeBytes { try collector.feed($0) }
    guard collector.isBetweenOutputs else { throw MQTTError(.malformedPacket, "the last packet is cut off") }
    return packets
  }
}

extension MQTTProperties {
  /// Properties that are built in place.
  init(_ build: (inout MQTTProperties) -> Void) {
    self.init()
    build(&self)
  }
}
