import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceWire
import Synchronization
import Testing

/// The operator's view of gateways.
@Suite struct DoorSnapshotTests {
  private final class Box: Sendable {
    let gathered = Mutex<GatheredSnapshot?>(nil)
  }

  private func snapshot(_ door: DoorWorld) throws -> BrokerSnapshot {
    let box = Box()
    door.broker.snapshot { gathered in box.gathered.withLock { $0 = gathered } }
    door.settle()
    let gathered = box.gathered.withLock { $0 }
    return try #require(gathered).assembled()
  }

  @Test func streamsAndConnectionsAreListedByTheirDoors() throws {
    let door = try DoorWorld([.http, .webSocket, .mqtt])
    let native = try NativeClient(door)
    native.publish("t", ["x"], stream: 1)
    let reader = door.connect(1)
    reader.send("GET /topics/t HTTP/1.1\r\nHost: b\r\n\r\n")
    let mqtt = MQTTClient.connected(door, "m", at: 3)
    mqtt.subscribe("t", .atMostOnce)
    door.settle()
    let before = try snapshot(door)
    #expect(before.doors.filter { $0.value > 0 } == [.native: 1, .http: 1, .mqtt: 1])
    #expect(before.doors.values.reduce(0, +) == before.connectionCount)
    let topic = try #require(before.topics.first { $0.summary.topic == "t" })
    #expect(Set(topic.subscriptions.map(\.door)) == [.http, .mqtt])
    #expect(topic.publications.map(\.door) == [.native])
    reader.abort()
    door.settle(.seconds(1))
    #expect(try snapshot(door).doors.filter { $0.value > 0 } == [.native: 1, .mqtt: 1])
  }

  /// The broker keeps sessions and retained messages through connections of its own, which aren't counted as clients. A member of a group belongs to
  /// a client, even though it outlives connections.
  @Test func theBrokersOwnConnectionsAreNoClients() throws {
    let door = try DoorWorld([.http, .mqtt], store: MemoryStore())
    door.settle()
    let before = try snapshot(door)
    #expect(before.doors.values.reduce(0, +) == 0)
    let client = MQTTClient.connected(door, "m", at: 2)
    client.publish("t", "1", .atLeastOnce, 1, retained: true)
    client.settle()
    let next = door.connect(1)
    next.send("POST /topics/t/groups/g/next HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n")
    door.settle()
    let seen = try snapshot(door)
    #expect(seen.doors.filter { $0.value > 0 } == [.http: 2, .mqtt: 1])
    #expect(seen.connectionCount == 3)
    #expect(seen.ownConnections > 0)
    #expect(seen.connections.allSatisfy { !$0.peer.hasSuffix(":0") })
    #expect(door.broker.metrics[.connections] == 3)
    client.disconnect()
    door.settle(.seconds(1))
    #expect(try snapshot(door).doors.filter { $0.value > 0 } == [.http: 2])
  }

  @Test func theBrokersOwnConnectionsTakeNoRoomOfClients() throws {
    let door = try DoorWorld([.mqtt], store: MemoryStore()) { $0.limits.connections = 1 }
    door.settle()
    let client = MQTTClient.connected(door, "m", clean: false, expiry: 60)
    client.publish("t", "1", .atLeastOnce, 1, retained: true)
    client.settle(.seconds(1))
    #expect(client.take() == ["connack 0", "puback 1"])
    #expect(MQTTClient.connected(door, "n").take() == ["connack 151"])
  }
}
