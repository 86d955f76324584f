import SluiceDoors
import SluiceIO
import SluiceMQTT
import TestSupport
import Testing

/// Topics for which the broker can't make a name: the client continues, and the operator gets an event.
@Suite struct MQTTUnnamedTopicTests {
  private static let unnamed = String(repeating: "a/", count: 4000) + "a"

  private func unnamed(_ events: [DoorEvent]) -> [(client: String, isFirst: Bool)] {
    events.compactMap {
      if case .mqttTopicUnnamed(let client, _, _, _, let isFirst) = $0 { (client, isFirst) } else { nil }
    }
  }

  @Test(
    arguments: MQTTVersion.allCases, [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce])
  func theConnectionGoesOn(version: MQTTVersion, qos: MQTTQoS) throws {
    let door = try DoorWorld([.mqtt])
    for round in 0..<2 {
      let client = MQTTClient.connected(door, "c", version)
      client.subscribe("b", .atMostOnce)
      _ = client.take()
      for number in 1...3 as ClosedRange<UInt16> { client.publish(Self.unnamed, "x", qos, number) }
      client.publish("b", "y", qos, 4)
      client.settle()
      client.settle()
      let lines = client.take()
      #expect(lines.contains("publish b \"y\" 0"))
      let reason = version == .v5 ? " 144" : ""
      let answers = lines.filter { $0.hasPrefix("puback") || $0.hasPrefix("pubrec") }
      let expected: [String] =
        switch qos {
        case .atMostOnce: []
        case .atLeastOnce: (1...3).map { "puback \($0)\(reason)" } + ["puback 4"]
        case .exactlyOnce: (1...3).map { "pubrec \($0)\(reason)" } + ["pubrec 4"]
        }
      #expect(answers == expected)
      #expect(!client.bytes.hasEnded)
      // Each is counted, and only the first of a client is marked as such, across its connections.
      let events = unnamed(door.takeEvents())
      #expect(events.map(\.isFirst) == [round == 0, false, false])
      #expect(events.allSatisfy { $0.client == "c" })
      client.disconnect()
    }
  }

  @Test(arguments: MQTTVersion.allCases) func aFilterIsRefused(version: MQTTVersion) throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c", version)
    _ = client.take()
    let options = MQTTSubscriptionOptions(.atLeastOnce)
    let items = ["a", Self.unnamed, "b/#"].map { MQTTSubscribe.Item($0, options) }
    client.send(.subscribe(MQTTSubscribe(7, items)))
    client.settle()
    #expect(client.take() == ["suback 7 [1, \(version == .v5 ? 0x8F : 0x80), 1]"])
    #expect(!client.bytes.hasEnded)
  }

  /// MQTT 3.1.1 can't give a reason, so the client is served without its will.
  @Test func aClientWithAnUnnamedWillIsServed() throws {
    let door = try DoorWorld([.mqtt])
    let will = MQTTConnect.Will(topic: Self.unnamed, payload: [1])
    let client = MQTTClient.connected(door, "c", .v311, will: will)
    #expect(client.take() == ["connack 0"])
    #expect(unnamed(door.takeEvents()).map(\.isFirst) == [true])
    let other = MQTTClient.connected(door, "d", .v5, will: will)
    #expect(other.take() == ["connack \(MQTTReason.topicNameInvalid.rawValue)"])
  }
}
