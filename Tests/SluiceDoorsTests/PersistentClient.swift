import SluiceMQTT
import Testing

/// An MQTT client that keeps its side of a session as the standard requires, over any number of connections.
struct PersistentClient {
  private let door: any MQTTStage
  private let id: String
  private let qos: MQTTQoS
  private(set) var client: MQTTClient
  private(set) var published = 0
  /// Messages that were sent but not acknowledged, in their order.
  private var unacknowledged: [(packetID: UInt16, text: String)] = []
  /// Identifiers for which PUBREL was sent.
  private var releasing: [UInt16] = []
  /// Identifiers of QoS 2 messages that the client received and the broker hasn't released.
  private var known: Set<String> = []
  private(set) var received: [String] = []
  private var lastID: UInt16 = 0

  init(_ door: any MQTTStage, _ id: String, _ qos: MQTTQoS, at index: Int = 1) {
    self.door = door
    self.id = id
    self.qos = qos
    client = MQTTClient.connected(door, id, at: index, clean: false, expiry: 3600)
    _ = client.await("connack")
    client.acknowledges = false
    _ = client.take()
  }

  var isIdle: Bool { unacknowledged.isEmpty && releasing.isEmpty }

  mutating func publishNext() {
    repeat {
      lastID = lastID == 500 ? 1 : lastID + 1
    } while releasing.contains(lastID) || unacknowledged.contains { $0.packetID == lastID }
    let text = "m\(published)"
    unacknowledged.append((lastID, text))
    client.publish("t/\(published % 3)", text, qos, lastID)
    published += 1
  }

  /// Drops the connection and opens another one, on which it sends all unacknowledged messages again.
  ///
  /// - Parameter index: the gateway to connect to.
  mutating func reconnect(at index: Int = 1) {
    handle(client.take())
    client.bytes.abort()
    client = MQTTClient.connected(door, id, at: index, clean: false, expiry: 3600)
    client.acknowledges = false
    #expect(client.await("connack"), "\(id) wasn't answered")
    let lines = client.take()
    #expect(lines.first == "connack 0 present")
    for packetID in releasing { client.send(.acknowledgement(MQTTAcknowledgement(.pubrel, packetID))) }
    for (packetID, text) in unacknowledged {
      client.publish("t/\((Int(text.dropFirst()) ?? 0) % 3)", text, qos, packetID, isDuplicate: true)
      // The broker may have the topic open when the next message arrives.
      if packetID % 2 == 0 { door.settle(.milliseconds(2)) }
    }
    handle(lines)
  }

  /// Lets time pass, and answers the packets that arrive.
  mutating func run(_ time: Duration = .milliseconds(5)) {
    client.settle(time)
    handle(client.take())
  }

  private mutating func handle(_ lines: [String]) {
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      let packetID = words.count > 1 ? UInt16(words[1]) ?? 0 : 0
      switch words[0] {
      case "puback", "pubrec":
        #expect(words.count == 2, "\(id) is told that a message isn't stored, which may not be so: \(line)")
        unacknowledged.removeAll { $0.packetID == packetID }
        guard words[0] == "pubrec" else { break }
        if !releasing.contains(packetID) { releasing.append(packetID) }
        client.send(.acknowledgement(MQTTAcknowledgement(.pubrel, packetID)))
      case "pubcomp": releasing.removeAll { $0 == packetID }
      case "pubrel":
        known.remove(words[1])
        client.send(.acknowledgement(MQTTAcknowledgement(.pubcomp, packetID)))
      case "publish": take(words)
      default: break
      }
    }
  }

  /// Handles `publish t/1 "m7" 2 again #5`.
  private mutating func take(_ words: [String]) {
    let text = words[2].replacing("\"", with: "")
    guard let number = client.identifiers[text]?.first else { return }
    client.identifiers[text]?.removeFirst()
    if words[3] == "2" {
      if known.insert("\(number)").inserted { received.append(text) }
      client.send(.acknowledgement(MQTTAcknowledgement(.pubrec, number)))
    } else {
      received.append(text)
      client.send(.acknowledgement(MQTTAcknowledgement(.puback, number)))
    }
  }
}
