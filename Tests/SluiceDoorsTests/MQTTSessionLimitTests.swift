import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import TestSupport
import Testing

/// The limits on MQTT sessions that outlive their connections. Sessions beyond them are refused and reported.
@Suite struct MQTTSessionLimitTests {
  private static let full = MQTTReason.quotaExceeded.rawValue

  private static func world(isStored: Bool, _ change: (inout MQTTLimits) -> Void) throws -> DoorWorld {
    var options = DoorOptions()
    change(&options.mqtt)
    return try DoorWorld([.mqtt], options: options, store: isStored ? MemoryStore() : nil)
  }

  private static func session(_ door: DoorWorld, _ id: String, expiry: UInt32 = 3600) -> MQTTClient {
    MQTTClient.connected(door, id, clean: false, expiry: expiry)
  }

  @Test(arguments: [false, true]) func sessionsBeyondTheNumberAreRefusedAndTold(isStored: Bool) throws {
    let door = try Self.world(isStored: isStored) { $0.sessions = 2 }
    for id in ["a", "b"] { Self.session(door, id).disconnect() }
    let third = Self.session(door, "c")
    #expect(third.take() == ["connack \(Self.full)"])
    #expect(door.takeEvents() == [.mqttSessionRefused(client: "c", identity: "")])
    // Existing sessions resume, and a client without a lasting session is served.
    let again = Self.session(door, "a")
    #expect(again.take() == ["connack 0 present"])
    #expect(MQTTClient.connected(door, "c").take() == ["connack 0"])
    #expect(door.takeEvents() == [])
    // After a session has ended, another one fits.
    MQTTClient.connected(door, "b").disconnect()
    #expect(Self.session(door, "c").take() == ["connack 0"])
  }

  /// A session whose record would be longer than the broker's limit for records. It would prevent all others from being stored.
  @Test func aSessionThatIsLongerThanARecordEnds() throws {
    let door = try DoorWorld([.mqtt], store: MemoryStore()) { $0.limits.record = 16 << 10 }
    let client = Self.session(door, "long")
    client.subscribe("#", .atLeastOnce)
    _ = client.take()
    let publisher = MQTTClient.connected(door, "p")
    let name = String(repeating: "x", count: 100)
    for number in 1...200 {
      publisher.publish("\(name)/\(number)", "x", .atLeastOnce, UInt16(number))
      publisher.settle(.milliseconds(5))
      client.settle(.milliseconds(5))
    }
    client.settle(.seconds(2))
    #expect(client.take().last == "disconnect \(Self.full)")
    #expect(client.bytes.hasEnded)
    #expect(door.takeEvents() == [.mqttSessionEnded(client: "long", identity: "")])
    // Other sessions are kept, across a restart of the broker too.
    Self.session(door, "short").disconnect()
    door.settle(.seconds(2))
    try door.restart()
    #expect(Self.session(door, "short").take() == ["connack 0 present"])
    #expect(Self.session(door, "long").take() == ["connack 0"])
  }

  @Test func thereIsRoomWhenSessionsHaveExpired() throws {
    let door = try Self.world(isStored: true) { $0.sessions = 1 }
    Self.session(door, "a", expiry: 5).disconnect()
    door.settle(.seconds(20))
    #expect(Self.session(door, "b").take() == ["connack 0"])
  }

  /// A session that grows through new topics while it is connected, so there is no SUBSCRIBE to refuse.
  @Test func aSessionThatGrowsBeyondTheLimitEndsWithAReason() throws {
    let door = try Self.world(isStored: true) { $0.sessionBytes = 64 << 10 }
    let client = Self.session(door, "c")
    client.subscribe("#", .atLeastOnce)
    let publisher = MQTTClient.connected(door, "p")
    for number in 0..<400 {
      publisher.publish(
        "\(number)/" + String(repeating: "x", count: 200), "m", .atLeastOnce, UInt16(number + 1))
      publisher.settle(.milliseconds(5))
    }
    client.settle(.seconds(2))
    client.settle(.seconds(2))
    #expect(client.take().last == "disconnect \(Self.full)")
    #expect(door.takeEvents().contains(.mqttSessionEnded(client: "c", identity: "")))
    #expect(Self.session(door, "c").take() == ["connack 0"])
  }

  /// Sessions that a broker with higher limits has stored stay: a restart removes none.
  @Test func sessionsThatAreThereOutliveARestart() throws {
    let door = try Self.world(isStored: true) { $0.sessions = 2 }
    for id in ["a", "b"] { Self.session(door, id).disconnect() }
    try door.restart()
    for id in ["a", "b"] { #expect(Self.session(door, id).take() == ["connack 0 present"]) }
    #expect(Self.session(door, "c").take() == ["connack \(Self.full)"])
  }
}
