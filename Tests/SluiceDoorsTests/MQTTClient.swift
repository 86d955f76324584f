import SluiceMQTT
import TestSupport
import Testing

/// A world with brokers to which MQTT clients connect.
protocol MQTTStage: AnyObject {
  /// Returns a byte client that is connected to the gateway with that number.
  func connect(_ index: Int) -> ByteClient

  /// Runs the world for a time, so that pending work is done.
  func settle(_ time: Duration)
}

extension MQTTStage {
  func settle() { settle(.milliseconds(100)) }
}

extension DoorWorld: MQTTStage {}

/// An MQTT client that sends packets, and keeps received packets as lines.
final class MQTTClient {
  let bytes: ByteClient
  let version: MQTTVersion
  private let door: any MQTTStage
  private var decoder = MQTTDecoder(maximumPacket: 1 << 28, from: .server)
  /// The received packets, as lines such as `publish a/b "text" 1 #7` and `puback 7`.
  private(set) var lines: [String] = []
  /// The broker's answer to CONNECT.
  private(set) var connack: MQTTConnack?
  /// Whether messages at QoS 1 and 2 are acknowledged.
  var acknowledges = true
  private(set) var payloads: [[UInt8]] = []
  /// The reasons in SUBACKs for refused filters.
  private(set) var reasons: [String] = []
  /// The received messages with all their properties.
  private(set) var messages: [Message] = []
  /// Packets that one write will send together; nil while each packet is sent at once.
  private var gathered: [UInt8]?
  /// The packet identifiers of messages at QoS 1 and 2 by their texts, one for each time that a message arrived.
  var identifiers: [String: [UInt16]] = [:]

  struct Message {
    var topic: String
    var payload: [UInt8]
    var packetID: UInt16
    var properties: MQTTProperties
  }

  init(_ door: any MQTTStage, _ version: MQTTVersion = .v5, at index: Int = 1) {
    self.door = door
    self.version = version
    bytes = door.connect(index)
  }

  /// Returns a client that is connected and has read its CONNACK.
  static func connected(
    _ door: any MQTTStage, _ id: String = "", _ version: MQTTVersion = .v5, at index: Int = 1,
    clean: Bool = true, expiry: UInt32 = 0,
    keepAlive: UInt16 = 0, receiveMaximum: UInt32? = nil, will: MQTTConnect.Will? = nil,
    user: (String, String)? = nil
  ) -> MQTTClient {
    let client = MQTTClient(door, version, at: index)
    var properties = MQTTProperties()
    if version == .v5, expiry > 0 { properties.append(.sessionExpiry, expiry) }
    if let receiveMaximum { properties.append(.receiveMaximum, receiveMaximum) }
    client.send(
      .connect(
        MQTTConnect(
          version, clientID: id, cleanStart: clean, keepAlive: keepAlive, will: will, username: user?.0,
          password: user.map { Array($0.1.utf8) }, properties: properties)))
    client.settle()
    return client
  }

  func send(_ packet: MQTTPacket) {
    var encoded: [UInt8] = []
    packet.encode(into: &encoded, version)
    if gathered == nil { bytes.send(encoded) } else { gathered? += encoded }
  }

  /// Sends all packets of a block in one write.
  func sendTogether(_ block: () -> Void) {
    gathered = []
    block()
    bytes.send(gathered ?? [])
    gathered = nil
  }

  func publish(
    _ topic: String, _ text: String, _ qos: MQTTQoS = .atMostOnce, _ packetID: UInt16 = 0,
    retained: Bool = false,
    isDuplicate: Bool = false, _ build: (inout MQTTProperties) -> Void = { _ in }
  ) {
    publish(
      topic, bytes: Array(text.utf8), qos, packetID, retained: retained, isDuplicate: isDuplicate, build)
  }

  func publish(
    _ topic: String, bytes payload: [UInt8], _ qos: MQTTQoS = .atMostOnce, _ packetID: UInt16 = 0,
    retained: Bool = false, isDuplicate: Bool = false, _ build: (inout MQTTProperties) -> Void = { _ in }
  ) {
    var properties = MQTTProperties()
    build(&properties)
    Array(topic.utf8).withUnsafeBytes { topic in
      payload.withUnsafeBytes { payload in
        properties.withView { view in
          send(
            .publish(
              MQTTPublish(
                topic: topic, payload: payload, qos: qos, packetID: packetID, isDuplicate: isDuplicate,
                isRetained: retained, properties: view)))
        }
      }
    }
  }

  func subscribe(
    _ filter: String, _ qos: MQTTQoS = .atMostOnce, _ packetID: UInt16 = 1, noLocal: Bool = false,
    _ build: (inout MQTTProperties) -> Void = { _ in }
  ) {
    var options = MQTTSubscriptionOptions(qos)
    options.noLocal = noLocal
    var properties = MQTTProperties()
    build(&properties)
    send(.subscribe(MQTTSubscribe(packetID, [MQTTSubscribe.Item(filter, options)], properties: properties)))
    settle()
  }

  /// Runs the world for a time, and answers the packets that arrive.
  func settle(_ time: Duration = .milliseconds(100)) {
    door.settle(time)
    read()
    door.settle(.milliseconds(20))
  }

  /// Lets time pass until a line with this prefix has arrived.
  func await(_ start: String, limit: Duration = .seconds(30)) -> Bool {
    for _ in 0..<Int(limit / .milliseconds(100)) {
      if lines.contains(where: { $0.hasPrefix(start) }) { return true }
      door.settle()
      read()
    }
    return lines.contains { $0.hasPrefix(start) }
  }

  private func read() {
    let chunk = bytes.take()
    do {
      try chunk.withUnsafeBytes { chunk in
        try decoder.decode(chunk) { header, body throws(MQTTError) in
          note(try MQTTPacket(header, body, version, from: .server))
          return true
        }
      }
    } catch {
      Issue.record("the broker has sent what a client refuses: \(error)")
    }
  }

  private func note(_ packet: MQTTPacket) {
    switch packet {
    case .connack(let packet):
      connack = packet
      lines.append("connack \(packet.reason.rawValue)\(packet.isSessionPresent ? " present" : "")")
    case .publish(let packet):
      payloads.append(Array(packet.payload))
      messages.append(
        Message(
          topic: String(decoding: packet.topic, as: UTF8.self), payload: Array(packet.payload),
          packetID: packet.packetID, properties: MQTTProperties(packet.properties)))
      let text =
        packet.payload.count > 64
        ? "\(packet.payload.count) bytes" : "\"\(String(decoding: packet.payload, as: UTF8.self))\""
      var line = "publish \(String(decoding: packet.topic, as: UTF8.self)) \(text) \(packet.qos.rawValue)"
      if packet.isRetained { line += " retained" }
      if packet.isDuplicate { line += " again" }
      for property in MQTTProperties(packet.properties).userProperties {
        line += " \(property.name)=\(property.value)"
      }
      lines.append(line)
      if packet.qos > .atMostOnce {
        identifiers[String(decoding: packet.payload, as: UTF8.self), default: []].append(packet.packetID)
      }
      guard acknowledges, packet.qos > .atMostOnce else { return }
      send(
        .acknowledgement(
          MQTTAcknowledgement(packet.qos == .atLeastOnce ? .puback : .pubrec, packet.packetID)))
    case .acknowledgement(let packet):
      lines.append(
        "\(packet.type) \(packet.packetID)\(packet.reason == .success ? "" : " \(packet.reason.rawValue)")")
      guard acknowledges else { return }
      if packet.type == .pubrec { send(.acknowledgement(MQTTAcknowledgement(.pubrel, packet.packetID))) }
      if packet.type == .pubrel { send(.acknowledgement(MQTTAcknowledgement(.pubcomp, packet.packetID))) }
    case .answers(let packet):
      if let reason = packet.properties.string(.reasonString) { reasons.append(reason) }
      lines.append("\(packet.type) \(packet.packetID) \(packet.reasons.map { Int($0.rawValue) })")
    case .disconnect(let packet): lines.append("disconnect \(packet.reason.rawValue)")
    case .pingresp: lines.append("pingresp")
    default: lines.append("\(packet)")
    }
  }

  /// The messages that arrived since the last call.
  func takeMessages() -> [Message] {
    defer { messages = [] }
    return messages
  }

  /// The lines that arrived since the last call.
  func take() -> [String] {
    defer { lines = [] }
    return lines
  }

  /// Drops the connection without DISCONNECT.
  func lose() {
    bytes.abort()
    door.settle()
  }

  func disconnect() {
    send(.disconnect(MQTTNotice(.disconnect, .success)))
    door.settle()
  }
}
