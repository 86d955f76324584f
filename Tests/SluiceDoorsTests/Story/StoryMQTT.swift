import SluiceMQTT
import Testing

extension MQTTClient {
  /// Returns a client whose session outlives its connection, and which acknowledges nothing by itself.
  fileprivate static func inStory(_ door: DoorWorld, _ id: String, at index: Int) -> MQTTClient {
    let client = connected(door, id, at: index, clean: false, expiry: 3600)
    client.acknowledges = false
    return client
  }
}

/// An MQTT client that publishes at QoS 2 in a session.
final class MQTTStoryWriter: StoryWriter {
  private let door: DoorWorld
  private let (index, id): (Int, String)
  private let topic: String
  private var client: MQTTClient
  private var pending: DoorRecord?
  private var packetID: UInt16 = 0
  private var isReceived = false
  /// Whether PUBREL was sent again, on another connection.
  private var isReleasedAgain = false

  init(_ door: DoorWorld, at index: Int, topic: String, id: String) {
    self.door = door
    (self.index, self.id) = (index, id)
    self.topic = topic.replacing(".", with: "/")
    client = .inStory(door, id, at: index)
    _ = client.take()
  }

  var isIdle: Bool { pending == nil }

  func publish(_ record: DoorRecord) {
    pending = record
    packetID += 1
    (isReceived, isReleasedAgain) = (false, false)
    send(record, isAgain: false)
  }

  private func send(_ record: DoorRecord, isAgain: Bool) {
    client.publish(topic, bytes: record.payload, .exactlyOnce, packetID, isDuplicate: isAgain) {
      record.add(to: &$0)
    }
  }

  private func release() {
    isReceived = true
    client.send(.acknowledgement(MQTTAcknowledgement(.pubrel, packetID)))
  }

  func look() {
    client.settle(.zero)
    for line in client.take() {
      switch line {
      case "pubrec \(packetID)": release()
      case "pubcomp \(packetID)": pending = nil
      // Its PUBCOMP was lost with the connection. The broker has forgotten the identifier, which is no error here (MQTT 5, 3.7.2.1).
      case "pubcomp \(packetID) 146" where isReleasedAgain: pending = nil
      default: Issue.record("\(id) got \(line)")
      }
    }
  }

  func lose() {
    look()
    client.bytes.abort()
    client = .inStory(door, id, at: index)
    #expect(client.await("connack"))
    #expect(client.take() == ["connack 0 present"])
    guard let pending else { return }
    isReleasedAgain = isReceived
    if isReceived { release() } else { send(pending, isAgain: true) }
  }
}

/// An MQTT client with a session and a subscription at QoS 2.
final class MQTTStoryReader: StoryReader {
  private let door: DoorWorld
  private let (index, id): (Int, String)
  private var client: MQTTClient
  /// Identifiers of messages that the broker hasn't released.
  private var known: Set<UInt16> = []
  private(set) var records: [DoorRecord] = []

  init(_ door: DoorWorld, at index: Int, topic: String, id: String) {
    self.door = door
    (self.index, self.id) = (index, id)
    client = .inStory(door, id, at: index)
    client.subscribe(topic.replacing(".", with: "/"), .exactlyOnce) {
      $0.append(user: "sluice-from", "earliest")
    }
    #expect(client.await("suback"))
  }

  func look() {
    client.settle(.zero)
    var messages = client.takeMessages()[...]
    for line in client.take() {
      let words = line.split(separator: " ")
      switch words[0] {
      case "publish":
        guard let message = messages.popFirst() else { return }
        if known.insert(message.packetID).inserted { records.append(DoorRecord(message)) }
        client.send(.acknowledgement(MQTTAcknowledgement(.pubrec, message.packetID)))
      case "pubrel":
        let packetID = UInt16(words[1]) ?? 0
        known.remove(packetID)
        client.send(.acknowledgement(MQTTAcknowledgement(.pubcomp, packetID)))
      case "connack", "suback": break
      default: Issue.record("\(id) got \(line)")
      }
    }
  }

  func lose() {
    look()
    client.bytes.abort()
    client = .inStory(door, id, at: index)
    #expect(client.await("connack 0 present"))
  }
}
