import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// Values of the broker in `$SYS/broker/…`.
@Suite struct MQTTSystemTests {
  /// The newest value of each topic that a client has got since the last look.
  private func values(_ client: MQTTClient) -> [String: String] {
    var values: [String: String] = [:]
    for message in client.takeMessages() {
      values[String(message.topic.dropFirst("$SYS/broker/".count))] = String(
        decoding: message.payload, as: UTF8.self)
    }
    return values
  }

  @Test(arguments: [MQTTVersion.v311, .v5])
  func valuesAreRetainedForNewSubscribersAndComeOnChange(version: MQTTVersion) throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c", version)
    client.subscribe("$SYS/broker/clients/connected", .exactlyOnce)
    client.settle()
    #expect(
      client.take() == [
        "connack 0", "suback 1 [2]", "publish $SYS/broker/clients/connected \"1\" 0 retained",
      ])
    client.settle(.seconds(5))
    #expect(client.take() == [])
    let other = MQTTClient.connected(door, "o", version)
    client.settle(.seconds(2))
    #expect(client.take() == ["publish $SYS/broker/clients/connected \"2\" 0"])
    // The same filter again has the value again, as a retained message.
    client.subscribe("$SYS/broker/clients/connected", .atMostOnce, 2)
    client.settle()
    #expect(
      client.take() == ["suback 2 [0]", "publish $SYS/broker/clients/connected \"2\" 0 retained"])
    client.send(.unsubscribe(MQTTUnsubscribe(3, ["$SYS/broker/clients/connected"])))
    other.disconnect()
    client.settle(.seconds(3))
    #expect(client.take().filter { $0.hasPrefix("publish") } == [])
  }

  @Test func allValuesCountWhatHappens() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    client.publish("state/a", "on", .atLeastOnce, 1, retained: true)
    client.publish("state/b", "on", .atLeastOnce, 2, retained: true)
    client.publish("state/b", "", .atLeastOnce, 3, retained: true)
    let away = MQTTClient.connected(door, "away", clean: false, expiry: 600)
    away.subscribe("$share/g/jobs", .atLeastOnce)
    client.settle()
    client.subscribe("$SYS/#")
    client.settle(.seconds(1))
    var found = values(client)
    #expect(found["version"]?.hasPrefix("sluice version ") == true)
    #expect(found["uptime"]?.hasSuffix(" seconds") == true)
    let expected = [
      "clients/connected": "2", "clients/disconnected": "0", "clients/total": "2", "clients/maximum": "2",
      "clients/expired": "0", "retained messages/count": "1", "store/messages/count": "1",
      "subscriptions/count": "2", "shared_subscriptions/count": "1", "publish/messages/received": "3",
      "publish/messages/dropped": "0",
    ]
    for (name, value) in expected { #expect(found[name] == value, "\(name)") }
    // CONNECT and SUBSCRIBE of both, three messages.
    #expect(found["messages/received"] == "7")
    #expect(found["load/connections/15min"].flatMap { Double($0) } ?? 0 > 0)
    #expect(found["bytes/sent"].flatMap { Int($0) } ?? 0 > 0)
    away.disconnect()
    client.settle(.seconds(2))
    found = values(client)
    #expect(found["clients/connected"] == "1")
    #expect(found["clients/disconnected"] == "1")
    #expect(found["subscriptions/count"] == "1")
    #expect(found["shared_subscriptions/count"] == "0")
    #expect(found["clients/total"] == nil, "it hasn't changed")
    #expect(found["version"] == nil)
    client.settle(.seconds(620))
    found = values(client)
    #expect(found["clients/expired"] == "1")
    #expect(found["clients/disconnected"] == "0")
  }

  /// Gauges return to their former values after sessions end, with several loops and packed connections.
  @Test func gaugesReturn() throws {
    let door = try DoorWorld(loops: 3, [.mqtt])
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("$SYS/broker/subscriptions/count")
    watcher.settle(.seconds(1))
    #expect(values(watcher)["subscriptions/count"] == "1")
    let clients = (0..<12).map { MQTTClient.connected(door, "c\($0)") }
    for client in clients {
      for number in 0..<3 { client.subscribe("a/\(number)") }
      client.settle(.seconds(1))
    }
    #expect(door.quietConnections > 0)
    watcher.settle(.seconds(2))
    #expect(values(watcher)["subscriptions/count"] == "37")
    for (number, client) in clients.enumerated() {
      if number % 2 == 0 { client.lose() } else { client.send(.unsubscribe(MQTTUnsubscribe(9, ["a/1"]))) }
    }
    watcher.settle(.seconds(2))
    #expect(values(watcher)["subscriptions/count"] == "13")
  }

  @Test func nothingIsComputedWithoutSubscribers() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    client.subscribe("#")
    client.subscribe("+/broker/uptime")
    client.settle(.seconds(3))
    #expect(!door.computesSystemValues)
    #expect(client.take().filter { $0.hasPrefix("publish") } == [], "wildcards don't match $SYS")
    client.subscribe("$SYS/broker/uptime")
    client.settle(.seconds(3))
    #expect(door.computesSystemValues)
    #expect(client.take().contains { $0.hasPrefix("publish $SYS/broker/uptime") })
    client.lose()
    door.settle(.seconds(3))
    #expect(!door.computesSystemValues)
  }

  @Test func retainHandlingAndRetainAsPublishedApply() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    var options = MQTTSubscriptionOptions(.atLeastOnce)
    options.retainHandling = .doNotSend
    options.retainAsPublished = true
    var properties = MQTTProperties()
    properties.append(.subscriptionIdentifier, 7)
    client.send(
      .subscribe(
        MQTTSubscribe(1, [MQTTSubscribe.Item("$SYS/broker/clients/+", options)], properties: properties)))
    client.settle(.seconds(3))
    #expect(client.take() == ["connack 0", "suback 1 [1]"])
    let other = MQTTClient.connected(door, "o")
    client.settle(.seconds(2))
    #expect(client.lines.contains("publish $SYS/broker/clients/connected \"2\" 0 retained"))
    #expect(client.takeMessages().allSatisfy { $0.properties.number(.subscriptionIdentifier) == 7 })
    withExtendedLifetime(other) {}
  }

  @Test func clientsCannotPublishThere() throws {
    let door = try DoorWorld([.mqtt])
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("$SYS/#")
    watcher.settle(.seconds(1))
    let native = try NativeClient(door)
    native.publish("%24SYS.broker.version", ["forged"], stream: 1)
    for (version, answer) in [(MQTTVersion.v5, "puback 1 144"), (.v311, "puback 1")] {
      let client = MQTTClient.connected(door, "c", version)
      client.publish("$SYS/broker/version", "forged", .atLeastOnce, 1, retained: true)
      client.publish("$SYS/broker/connection/b/state", "1", .atLeastOnce, 2, retained: true)
      client.settle()
      #expect(client.take() == ["connack 0", answer, "puback 2"])
    }
    watcher.settle(.seconds(2))
    let messages = watcher.takeMessages().map { ($0.topic, String(decoding: $0.payload, as: UTF8.self)) }
    #expect(!messages.contains { $0.1 == "forged" })
    #expect(messages.contains { $0 == ("$SYS/broker/connection/b/state", "1") })
    #expect(messages.contains { $0 == ("$SYS/broker/publish/messages/dropped", "2") })
    var will = MQTTConnect.Will(topic: "$SYS/broker/version", payload: Array("forged".utf8))
    will.qos = .atMostOnce
    #expect(MQTTClient.connected(door, "v", will: will).take() == ["connack 144"])
    // A record that is already in the topic doesn't become a retained message.
    var batch = BatchBuilder()
    try Array("%24SYS.broker.version".utf8).withUnsafeBytes { key in
      try Array("forged".utf8).withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
    }
    native.publish("mqtt.retained", batch, stream: 3)
    let late = MQTTClient.connected(door, "l")
    late.subscribe("$SYS/broker/version")
    late.settle(.seconds(1))
    #expect(late.takeMessages().map(\.payload).count == 1)
  }

  @Test func permissionsApply() throws {
    var policy = AccessPolicy()
    let hash = try #require(PasswordHash(of: "pw", cost: Scrypt.Cost(logN: 1, r: 1, p: 1)))
    policy.users = ["all": hash, "some": hash, "none": hash]
    policy.permissions = [
      "all": Permissions([Permissions.Rule(.subscribe, on: try TopicPattern(">"))]),
      "some": Permissions([Permissions.Rule(.subscribe, on: try TopicPattern("%24SYS.broker.clients.*"))]),
      "none": Permissions([Permissions.Rule(.subscribe, on: try TopicPattern("sensors.>"))]),
    ]
    let door = try DoorWorld([.mqtt], access: policy)
    func messages(_ user: String) -> [String] {
      let client = MQTTClient.connected(door, user, user: (user, "pw"))
      client.settle(.seconds(1))
      client.subscribe("$SYS/#")
      client.settle(.seconds(1))
      #expect(client.take().contains("suback 1 [\(user == "none" ? 135 : 0)]"))
      return client.takeMessages().map(\.topic)
    }
    #expect(messages("all").contains("$SYS/broker/version"))
    let some = messages("some")
    #expect(some.count == 7)
    #expect(some.allSatisfy { $0.hasPrefix("$SYS/broker/clients/") })
    #expect(messages("none") == [])
  }

  /// A session's subscription continues on a new connection, without values that its client hasn't requested again.
  @Test(arguments: [false, true]) func aSessionGetsChangesAgain(isStored: Bool) throws {
    let door = try DoorWorld([.mqtt], store: isStored ? MemoryStore() : nil)
    let first = MQTTClient.connected(door, "s", clean: false, expiry: 600)
    first.subscribe("$SYS/broker/uptime", .atLeastOnce)
    first.settle(.seconds(2))
    #expect(values(first)["uptime"] != nil)
    first.lose()
    let second = MQTTClient.connected(door, "s", clean: false, expiry: 600)
    second.settle(.seconds(3))
    #expect(second.lines.contains("connack 0 present"))
    #expect(values(second)["uptime"] != nil)
  }

  @Test func aNodeOfAClusterSaysWhatIsItsOwn() throws {
    let nodes = try DoorNodes()
    nodes.settle(.seconds(5))
    let client = MQTTClient.connected(nodes, "c")
    client.settle(.seconds(1))
    client.publish("state/a", "on", .atLeastOnce, 1, retained: true)
    client.settle(.seconds(2))
    client.subscribe("$SYS/#")
    client.settle(.seconds(2))
    let found = values(client)
    #expect(found["retained messages/count"] == "1")
    #expect(found["clients/connected"] == "1")
  }
}
