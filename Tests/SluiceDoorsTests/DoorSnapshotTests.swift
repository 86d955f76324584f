import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization
import Testing

/// What operators are shown of doors.
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
}
