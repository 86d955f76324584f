import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

/// Sessions that are packed while no message is in progress, and unpacked again.
@Suite struct QuietTests {
  /// Applies random events to two sessions, one packed at every quiet moment and one never packed: both send the same packets and requests.
  @Test func aPackedSessionGoesOnAsIfItHadNotBeen() throws {
    var random = SeededRandom.printed()
    var packings = 0
    for _ in 0..<2_000 {
      let bytes = (0..<Int.random(in: 50..<600, using: &random)).map { _ in
        UInt8.random(in: .min ... .max, using: &random)
      }
      var plain = MQTTSessionProbe(ProbeInput(bytes))
      var packed = MQTTSessionProbe(ProbeInput(bytes), packsWhenQuiet: true)
      try plain.run()
      try packed.run()
      #expect(packed.histories == plain.histories)
      packings += packed.packings
    }
    #expect(packings > 10_000)
  }

  @Test func aSessionWithSomethingUnderWayIsNotQuiet() {
    var rig = SessionRig.connected()
    #expect(rig.session.isQuiet)
    rig.send(bytes: [0x30])
    #expect(!rig.session.isQuiet)
    rig.send(bytes: [0x04, 0, 1, 0x61, 0])
    #expect(rig.session.isQuiet)
    rig.publish("a", "p", .atLeastOnce, 1)
    #expect(!rig.session.isQuiet)
    rig.appended(1)
    #expect(rig.session.isQuiet)
    rig.subscribe("a", MQTTSubscriptionOptions(.atLeastOnce))
    #expect(rig.session.isQuiet)
    rig.deliver("a", "p", .atLeastOnce)
    #expect(!rig.session.isQuiet)
    rig.send(.puback, 1)
    #expect(!rig.session.isQuiet)
    rig.flush()
    #expect(rig.session.isQuiet)
  }

  /// Many clients are idle and have one subscription, so its packed size matters.
  @Test func aSessionWithASubscriptionIsPackedInFewBytes() {
    var rig = SessionRig.connected(.v311)
    rig.subscribe("sensors/room-7/temperature", MQTTSubscriptionOptions(.atMostOnce))
    var writer = PackedWriter()
    rig.session.pack(into: &writer)
    #expect(writer.bytes.count < 80)
  }
}
