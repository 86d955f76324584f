import SluiceMQTT
import TestSupport
import Testing

@Suite("MQTT session state")
struct StateTests {
  /// A session with that many subscriptions and a full window.
  private static func rig(_ subscriptions: Int) -> SessionRig {
    var rig = SessionRig.connected(expiry: 100)
    for number in 0..<subscriptions {
      rig.subscribe("sensors/\(number)/+/value", MQTTSubscriptionOptions(.exactlyOnce))
    }
    for _ in 0..<32 { rig.deliver() }
    for packetID in 1...4 as ClosedRange<UInt16> { rig.send(.pubrec, packetID) }
    for packetID in 1...4 as ClosedRange<UInt16> { rig.publish("a", "p", .exactlyOnce, packetID) }
    return rig
  }

  @Test("a session that is away takes at most 1 KiB with ten subscriptions and a full window")
  func small() throws {
    var rig = Self.rig(10)
    rig.lose()
    let state = try #require(rig.departure?.state)
    #expect(state.count <= 1024)
  }

  @Test("comes back as it was")
  func roundTrip() throws {
    var rig = Self.rig(3)
    rig.send(.unsubscribe(MQTTUnsubscribe(9, ["sensors/1/+/value"])))
    rig.lose()
    let bytes = try #require(rig.departure?.state)
    let state = try MQTTSessionState(decoding: bytes)
    #expect(state.encoded() == bytes)
  }

  @Test("what no session has written is refused, and does no harm")
  func damaged() throws {
    var random = SeededRandom.printed()
    var rig = Self.rig(3)
    rig.lose()
    let bytes = try #require(rig.departure?.state)
    for length in bytes.indices {
      #expect(throws: (any Error).self) { try MQTTSessionState(decoding: Array(bytes[..<length])) }
    }
    for _ in 0..<2000 {
      var damaged = bytes
      for _ in 0..<3 {
        damaged[.random(in: damaged.indices, using: &random)] = .random(in: 0...255, using: &random)
      }
      var next = SessionRig.connected(clean: false, expiry: 100, state: damaged)
      next.deliver()
      next.send(.puback, 5)
      next.flush()
      next.lose()
    }
  }
}
