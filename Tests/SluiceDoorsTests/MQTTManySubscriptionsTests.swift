import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import TestSupport
import Testing

/// As many subscriptions as a client may have by default.
@Suite struct MQTTManySubscriptionsTests {
  private static let most = 10_000

  private func subscribe(_ client: MQTTClient, _ filters: [String], _ qos: MQTTQoS) {
    for start in stride(from: 0, to: filters.count, by: 500) {
      client.send(
        .subscribe(
          MQTTSubscribe(
            UInt16(start / 500 + 1),
            filters[start..<min(start + 500, filters.count)].map {
              MQTTSubscribe.Item($0, MQTTSubscriptionOptions(qos))
            })))
      client.settle()
    }
    client.settle(.seconds(5))
  }

  /// Filters of both kinds: one pattern each, and two each.
  @Test(arguments: [("+/state", MQTTQoS.atMostOnce), ("#", .atLeastOnce)])
  func eachGetsItsMessage(end: String, qos: MQTTQoS) throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    subscribe(client, (1...Self.most).map { "devices/d\($0)/\(end)" }, qos)
    let answers = client.take().filter { $0.hasPrefix("suback") }
    #expect(answers.count == Self.most / 500)
    #expect(answers.allSatisfy { !$0.contains("151") && !$0.contains("128") })
    #expect(door.broker.metrics[.subscriptions] >= Self.most)

    client.subscribe("devices/more", qos, 30)
    #expect(client.take().filter { $0.hasPrefix("suback") } == ["suback 30 [151]"])
    #expect(client.reasons.last == "a session has at most 10000 subscriptions")

    let publisher = MQTTClient.connected(door, "p")
    for number in 1...Self.most {
      publisher.publish("devices/d\(number)/a/state", "\(number)")
      if number % 500 == 0 { publisher.settle() }
    }
    client.settle(.seconds(5))
    for _ in 0..<200 where client.payloads.count < Self.most { client.settle(.milliseconds(500)) }
    #expect(client.payloads.count == Self.most)
    #expect(Set(client.payloads.map { String(decoding: $0, as: UTF8.self) }).count == Self.most)

    // One that is given up makes room for another.
    client.send(.unsubscribe(MQTTUnsubscribe(40, ["devices/d1/\(end)"])))
    client.subscribe("devices/more", qos, 41)
    #expect(client.lines.contains("suback 41 [\(qos.rawValue)]"))
  }

  /// Subscriptions are charged to the account of the client: a share of memory that is too small for all of them ends them with a reason.
  @Test func subscriptionsAreCharged() throws {
    let door = try DoorWorld([.mqtt]) {
      $0.limits.memory = 512 << 20
      $0.limits.memoryPerAddress = 8 << 20
    }
    let client = MQTTClient.connected(door, "c")
    subscribe(client, (1...4000).map { "devices/d\($0)/+" }, .atMostOnce)
    let lines = client.take().filter { $0.hasPrefix("suback") }
    #expect(lines.first?.contains("151") == false)
    #expect(lines.last?.contains("151") == true, "\(lines.last ?? "")")
    #expect(client.reasons.last?.contains("memory") == true, "\(client.reasons)")
    // Another address has a share of its own; what this one gives up it may have again.
    client.disconnect()
    door.settle(.seconds(1))
    let again = MQTTClient.connected(door, "c")
    again.subscribe("devices/d1/+")
    #expect(again.take().last == "suback 1 [0]")
  }
}
