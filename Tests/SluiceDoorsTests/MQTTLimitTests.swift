import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceTopics
import SluiceWire
import TestSupport
import Testing

/// The limits on the requests of MQTT clients.
@Suite struct MQTTLimitTests {
  private static func world(_ change: (inout MQTTLimits) -> Void, store: MemoryStore? = nil) throws
    -> DoorWorld
  {
    var options = DoorOptions()
    change(&options.mqtt)
    return try DoorWorld([.mqtt], options: options, store: store)
  }

  @Test func aClientIsToldOfTheLimits() throws {
    let door = try Self.world {
      $0.keepAlive = .seconds(60)
      $0.sessionExpiry = .seconds(100)
      $0.receiveMaximum = 7
      $0.packet = 5000
      $0.topicAliases = 3
    }
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 200)
    let properties = try #require(client.connack).properties
    #expect(properties.number(.serverKeepAlive) == 60)
    #expect(properties.number(.sessionExpiry) == 100)
    #expect(properties.number(.receiveMaximum) == 7)
    #expect(properties.number(.maximumPacketSize) == 5000)
    #expect(properties.number(.topicAliasMaximum) == 3)
    client.publish("t", String(repeating: "x", count: 6000), .atLeastOnce, 1)
    client.settle()
    #expect(client.take().last == "disconnect \(MQTTReason.packetTooLarge.rawValue)")
  }

  @Test func aClientWithAShorterKeepAliveTimeKeepsItsOwn() throws {
    let door = try Self.world { $0.keepAlive = .seconds(60) }
    for keepAlive in [10, 60] as [UInt16] {
      let client = MQTTClient.connected(door, "c\(keepAlive)", keepAlive: keepAlive)
      #expect(try #require(client.connack).properties.number(.serverKeepAlive) == nil)
    }
    let any = try Self.world { $0.keepAlive = .zero }
    #expect(try #require(MQTTClient.connected(any, "c").connack).properties.number(.serverKeepAlive) == nil)
  }

  /// A client without a keep alive time, whose machine has vanished: it sends nothing, and no packet reports the loss.
  @Test(arguments: [0, 50_000] as [UInt16]) func aHalfOpenClientIsDroppedAndItsWillPublished(
    keepAlive: UInt16
  ) throws {
    let door = try Self.world { $0.keepAlive = .seconds(20) }
    let watcher = MQTTClient.connected(door, "w", keepAlive: 20)
    watcher.subscribe("gone/+")
    let will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8))
    let client = MQTTClient.connected(door, "c", keepAlive: keepAlive, will: will)
    #expect(try #require(client.connack).properties.number(.serverKeepAlive) == 20)
    func wait(_ seconds: Int64) {
      watcher.send(.pingreq)
      watcher.settle(.seconds(seconds))
    }
    for _ in 0..<2 { wait(14) }
    #expect(!watcher.take().contains { $0.hasPrefix("publish") })
    wait(3)
    #expect(watcher.take().contains("publish gone/c \"dead\" 0"))
    #expect(door.broker.metrics[.connections] == 1)
    client.settle()
    #expect(client.take().last == "disconnect \(MQTTReason.keepAliveTimeout.rawValue)")
  }

  @Test(arguments: [false, true]) func aSessionEndsAtTheLongestExpiry(isStored: Bool) throws {
    let door = try Self.world({ $0.sessionExpiry = .seconds(30) }, store: isStored ? MemoryStore() : nil)
    for (away, isPresent) in [(20, true), (31, false)] as [(Int64, Bool)] {
      MQTTClient.connected(door, "c", clean: false, expiry: 3600).disconnect()
      door.settle(.seconds(away))
      let again = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
      #expect(again.take() == ["connack 0\(isPresent ? " present" : "")"])
      again.disconnect()
    }
  }

  /// A record contains the whole session. With a record for each of its subscriptions, the cost would be the square of their number.
  @Test func aSessionWithManySubscriptionsIsKeptInAFewRecords() throws {
    let door = try Self.world({ $0.subscriptions = 5000 }, store: MemoryStore())
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    let long = String(repeating: "x", count: 200)
    let items = (0..<400).map { MQTTSubscribe.Item("\($0)/\(long)", MQTTSubscriptionOptions(.atLeastOnce)) }
    client.send(.subscribe(MQTTSubscribe(1, items)))
    client.settle(.seconds(1))
    #expect(client.take().last?.hasPrefix("suback 1 ") == true)
    let before = try NativeClient(door).show("mqtt.sessions").summary.nextOffset
    for number in 1...200 {
      let item = MQTTSubscribe.Item("more/\(number)", MQTTSubscriptionOptions(.atLeastOnce))
      client.send(.subscribe(MQTTSubscribe(UInt16(number + 1), [item])))
      door.settle(.milliseconds(1))
    }
    client.settle(.seconds(1))
    #expect(client.take().filter { $0.hasSuffix(" [1]") }.count == 200)
    let after = try NativeClient(door).show("mqtt.sessions").summary.nextOffset
    // 88 KiB each, at 8 MiB per second.
    #expect(after > before)
    #expect(after - before < 60)
    try door.restart()
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("more/200", "1", .atLeastOnce, 1)
    publisher.publish("399/\(long)", "2", .atLeastOnce, 2)
    publisher.settle()
    let again = MQTTClient.connected(door, "c", clean: false, expiry: 3600)
    again.settle(.seconds(1))
    #expect(again.take().first == "connack 0 present")
    #expect(Set(again.payloads.map { String(decoding: $0, as: UTF8.self) }) == ["1", "2"])
  }

  /// A record contains the message's flags besides the payload.
  @Test func aMessageMayBeAsLongAsARecord() throws {
    let door = try Self.world { _ in }
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atLeastOnce)
    let payload = [UInt8](repeating: 1, count: (1 << 20) - 14)
    client.publish("t", bytes: payload, .atLeastOnce, 2)
    client.settle(.seconds(2))
    client.settle(.seconds(2))
    #expect(Set(client.take().dropFirst(2)) == ["puback 2", "publish t \(payload.count) bytes 1"])
  }

  @Test func subscriptionsBeyondTheSettingAreRefused() throws {
    let door = try Self.world { $0.subscriptions = 2 }
    let client = MQTTClient.connected(door, "c")
    for number in 1...3 { client.subscribe("t/\(number)", .atMostOnce, UInt16(number)) }
    #expect(client.take() == ["connack 0", "suback 1 [0]", "suback 2 [0]", "suback 3 [151]"])
    #expect(
      door.takeEvents() == [
        .mqttSubscriptionsRefused(
          client: "c", identity: "", filter: "t/3", count: 1, code: 0x97,
          reason: "a session has at most 2 subscriptions")
      ])
  }

  @Test func filtersThatMayNotBeUsedAreRefusedAndTold() throws {
    let door = try Self.world { _ in }
    let client = MQTTClient.connected(door, "c")
    let options = MQTTSubscriptionOptions(.atLeastOnce)
    let items = ["fine", "a/#/b", String(repeating: "x", count: 256), "$share/g"].map {
      MQTTSubscribe.Item($0, options)
    }
    client.send(.subscribe(MQTTSubscribe(7, items)))
    client.settle()
    #expect(client.take() == ["connack 0", "suback 7 [1, 143, 143, 143]"])
    let events = door.takeEvents()
    guard case .mqttSubscriptionsRefused("c", "", "a/#/b", 3, 0x8F, let reason)? = events.first else {
      Issue.record("\(events)")
      return
    }
    #expect(reason.contains("#"))
    #expect(events.count == 1)
  }
}
