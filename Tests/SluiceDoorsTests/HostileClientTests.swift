import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// Harm that a gateway's clients may try: its effect is bounded, answered, and ends with the client.
@Suite struct HostileClientTests {
  @Test func willsOfDeadClientsByTheThousandArePublishedAndLeaveNothing() throws {
    let door = try DoorWorld([.mqtt])
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("gone/+", .atMostOnce)
    _ = watcher.take()
    let will = MQTTConnect.Will(topic: "gone/all", payload: Array("dead".utf8), qos: .atLeastOnce)
    for _ in 0..<10 {
      let clients = (0..<100).map { _ in MQTTClient(door) }
      for client in clients {
        client.send(.connect(MQTTConnect(.v5, clientID: "", will: will)))
      }
      door.settle()
      for client in clients { client.bytes.abort() }
      door.settle(.milliseconds(50))
    }
    watcher.settle(.seconds(1))
    #expect(watcher.take().count == 1000)
    #expect(door.broker.metrics[.connections] == 1)
    #expect(door.broker.metrics[.publications] == 0)
  }

  @Test func whatAClientPublishedBeforeItLeftIsPublishedThoughItHasReadNothing() throws {
    let door = try DoorWorld([.mqtt])
    let client = MQTTClient.connected(door, "c")
    client.subscribe("t", .atMostOnce)
    client.bytes.isPaused = true
    let native = try NativeClient(door)
    native.publishMuch("t")
    client.publish("last", "words")
    client.bytes.close()
    native.settle(.seconds(2))
    #expect(native.show("last").summary.nextOffset == 1)
    #expect(door.broker.metrics[.connections] == 1)
  }

  @Test func subscriptionsBeyondTheLimitAreRefused() throws {
    var options = DoorOptions()
    options.mqtt.subscriptions = 1024
    let door = try DoorWorld([.mqtt], options: options)
    let client = MQTTClient.connected(door, "c")
    for round in 0..<12 {
      let items = (0..<100).map {
        MQTTSubscribe.Item("t/\(round)/\($0)", MQTTSubscriptionOptions(.atLeastOnce))
      }
      client.send(.subscribe(MQTTSubscribe(UInt16(round + 1), items)))
      client.settle()
    }
    let answers = client.take().joined()
    #expect(answers.split(separator: "151").count - 1 == 1200 - 1024)
    client.lose()
    #expect(door.broker.metrics[.connections] == 0)
  }
}
