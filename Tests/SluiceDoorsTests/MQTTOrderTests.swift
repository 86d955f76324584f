import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceWire
import TestSupport
import Testing

/// A client's packets take effect in the order in which it sent them.
@Suite struct MQTTOrderTests {
  private static let levels = [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce]

  private func messages(_ client: MQTTClient) -> [String] { client.take().filter { $0.hasPrefix("publish") } }

  private func subscribeItem(_ filter: String, _ qos: MQTTQoS) -> MQTTPacket {
    .subscribe(MQTTSubscribe(9, [MQTTSubscribe.Item(filter, MQTTSubscriptionOptions(qos))]))
  }

  /// PUBLISH and SUBSCRIBE in one write, as devices begin: the message is older than the subscription.
  @Test(arguments: MQTTVersion.allCases, levels)
  func aMessageBeforeSUBSCRIBEIsNotALiveOne(version: MQTTVersion, qos: MQTTQoS) throws {
    for (store, expiry) in [(nil, 0), (nil, 3600), (MemoryStore(), 0), (MemoryStore(), 3600)]
      as [(MemoryStore?, UInt32)]
    {
      let door = try DoorWorld([.mqtt], store: store)
      for (number, filter) in ["t/0", "t/+", "#", "$share/g/t/3", "$share/g/+/4"].enumerated() {
        let client = MQTTClient.connected(door, "c\(number)", version, clean: expiry == 0, expiry: expiry)
        client.sendTogether {
          client.publish("t/\(number)", "own", qos, 7)
          client.send(subscribeItem(filter, .atLeastOnce))
        }
        client.settle(.seconds(2))
        let lines = client.take()
        #expect(lines.contains("suback 9 [1]"), "\(filter): \(lines)")
        #expect(!lines.contains { $0.hasPrefix("publish") }, "\(filter): \(lines)")
        client.publish("t/\(number)", "later", qos, 8)
        client.settle()
        client.settle()
        #expect(messages(client) == ["publish t/\(number) \"later\" \(min(qos.rawValue, 1))"], "\(filter)")
        client.disconnect()
      }
    }
  }

  /// A retained message that is published before SUBSCRIBE arrives once, as the topic's retained one.
  @Test(arguments: MQTTVersion.allCases, levels)
  func aRetainedMessageBeforeSUBSCRIBEComesOnce(version: MQTTVersion, qos: MQTTQoS) throws {
    for store in [nil, MemoryStore()] {
      let door = try DoorWorld([.mqtt], store: store)
      let client = MQTTClient.connected(door, "c", version)
      client.sendTogether {
        client.publish("t/a", "Online", qos, 7, retained: true)
        client.send(subscribeItem("t/+", .atLeastOnce))
      }
      client.settle()
      client.settle()
      #expect(messages(client) == ["publish t/a \"Online\" \(min(qos.rawValue, 1)) retained"])
    }
  }

  @Test func theSameHoldsAtTheNodesOfACluster() throws {
    let nodes = try DoorNodes()
    for number in 0..<12 {
      let client = MQTTClient.connected(nodes, "c\(number)", at: number % 3)
      #expect(client.await("connack"))
      client.sendTogether {
        client.publish("t/\(number)", "own", Self.levels[number % 3], 7)
        client.publish("r/\(number)", "kept", Self.levels[number % 3], 8, retained: true)
        client.send(subscribeItem("+/\(number)", .atMostOnce))
      }
      for _ in 0..<10 { client.settle() }
      #expect(messages(client) == ["publish r/\(number) \"kept\" 0 retained"])
    }
  }

  /// Messages that a lossless topic only accepts with this subscription's demand don't block the subscription.
  @Test func aSubscriptionDoesNotWaitForMessagesThatWaitForIt() throws {
    let door = try DoorWorld([.mqtt]) { $0.topicDefaults.flow = .lossless }
    let client = MQTTClient.connected(door, "c")
    client.sendTogether {
      for number in 1...5 { client.publish("t", "\(number)", .atLeastOnce, UInt16(number)) }
      client.send(subscribeItem("t", .atLeastOnce))
    }
    for _ in 0..<30 { client.settle() }
    let lines = client.take()
    #expect(lines.contains("suback 9 [1]"))
    #expect(lines.filter { $0.hasPrefix("puback") }.count == 5, "\(lines)")
  }

  /// UNSUBSCRIBE, and another SUBSCRIBE, while the first one waits.
  @Test func whatIsUnsubscribedWhileItWaitsLeavesNothing() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    client.sendTogether {
      client.publish("t", "own")
      client.send(subscribeItem("t", .atMostOnce))
      client.send(.unsubscribe(MQTTUnsubscribe(10, ["t"])))
      client.send(subscribeItem("u", .atMostOnce))
    }
    client.settle(.seconds(2))
    #expect(client.take().filter { $0.hasPrefix("suback") } == ["suback 9 [0]", "suback 9 [0]"])
    let other = MQTTClient.connected(door, "o")
    other.publish("t", "t")
    other.publish("u", "u")
    other.settle()
    client.settle()
    #expect(messages(client) == ["publish u \"u\" 0"])
    #expect(door.broker.metrics[.subscriptions] == 1)
  }
}
