import SluiceMQTT
import SluiceWire
import TestSupport

/// Passes any bytes to the decoders of MQTT clients' input, and to sessions with arbitrary clients and brokers.
enum MQTTProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte for the version and the sender, one for how the stream is split; then the stream after the packet that opens it.
    case mqttPackets
    /// Names and filters.
    case mqttTopics
    /// A stored session.
    case mqttStates
    /// Events of a session: see ``MQTTSessionProbe``.
    case mqttSessions
  }

  static func run(_ target: Target, on bytes: [UInt8]) throws {
    switch target {
    case .mqttPackets: try packets(bytes)
    case .mqttTopics: try topics(bytes)
    case .mqttStates: try state(bytes)
    case .mqttSessions:
      var probe = MQTTSessionProbe(ProbeInput(bytes))
      try probe.run()
    }
  }

  // MARK: Packets

  /// However the stream is split, the packets are the same. They are also the same after writing and reading, and little is buffered.
  private static func packets(_ bytes: [UInt8]) throws {
    var input = ProbeInput(bytes)
    let choice = input.byte()
    let version: MQTTVersion = choice & 1 == 0 ? .v5 : .v311
    let sender: MQTTSender = choice & 2 == 0 ? .client : .server
    let step = max(1, Int(input.byte()))
    let stream = input.remaining()
    let (whole, fault) = try outcome([stream], version, sender)
    let pieces = stride(from: 0, to: stream.count, by: step).map {
      Array(stream[$0..<min($0 + step, stream.count)])
    }
    let (cut, cutFault) = try outcome(pieces, version, sender)
    guard fault == cutFault, whole == cut else {
      throw ProbeViolation(
        "cut every \(step) bytes: \(cut), \(String(describing: cutFault)) instead of \(whole)")
    }
    for packet in whole {
      let written = packet.encoded(version)
      guard try OwnedPacket.all(in: written, version, from: sender) == [packet] else {
        throw ProbeViolation("\(packet) isn't the same when it is read again")
      }
    }
  }

  private static func outcome(
    _ chunks: [[UInt8]], _ version: MQTTVersion, _ sender: MQTTSender
  ) throws -> ([OwnedPacket], MQTTError?) {
    let collector = PacketCollector(version, from: sender, maximumPacket: 2048)
    for chunk in chunks {
      do {
        try withExactMemory(chunk) { try collector.take($0) }
      } catch let fault as MQTTError {
        return (collector.packets, fault)
      }
      guard collector.heldBytes <= 4096 else { throw ProbeViolation("\(collector.heldBytes) bytes are held") }
    }
    return (collector.packets, nil)
  }

  // MARK: Topics

  /// The first line is a name, the others are filters. Translating back gives the same text, and patterns match the same names as filters.
  private static func topics(_ bytes: [UInt8]) throws {
    let lines = bytes.split(separator: 10, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
    let name = lines[0]
    let broker = try? MQTTTopicName.brokerName(name)
    if let broker {
      guard Array(MQTTTopicName.name(ofBroker: broker).utf8) == Array(name.utf8) else {
        // An MQTT topic name has no wildcards, which the codec has checked before.
        guard name.utf8.contains(where: { "+#".utf8.contains($0) }) else {
          throw ProbeViolation("\(name) doesn't come back")
        }
        return
      }
      try TopicName.validate(broker)
    }
    for line in lines.dropFirst() {
      guard let filter = try? MQTTTopicFilter(line) else { continue }
      guard filter.description.utf8.elementsEqual(line.utf8) else {
        throw ProbeViolation("\(line) has another description: \(filter)")
      }
      let matches = filter.matches(name)
      guard let broker, let patterns = try? filter.brokerPatterns() else { continue }
      let selected =
        try filter.isFor(broker: broker) ? patterns.filter { try TopicPattern($0).selects(broker) }.count : 0
      // Wildcards don't match inboxes.
      let isPlain = !name.hasPrefix("_inbox")
      guard selected <= 1, !isPlain || (selected == 1) == matches else {
        throw ProbeViolation("\(line) matches \(name): \(matches), but \(selected) patterns select it")
      }
    }
  }

  // MARK: States

  private static func state(_ bytes: [UInt8]) throws {
    guard let state = try? MQTTSessionState(decoding: bytes) else { return }
    let again = try MQTTSessionState(decoding: state.encoded())
    guard again.encoded() == state.encoded() else {
      throw ProbeViolation("a state isn't the same when it is read again")
    }
  }
}
