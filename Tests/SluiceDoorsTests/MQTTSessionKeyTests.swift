import SluiceIO
import SluiceMQTT
import SluiceStore
import TestSupport
import Testing

@testable import SluiceDoors

/// The session that a client identifier names.
@Suite struct MQTTSessionKeyTests {
  private static let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")

  @Test(arguments: [false, true]) func clientIdentifiersAreComparedByBytes(isStored: Bool) throws {
    let door = try DoorWorld([.mqtt], store: isStored ? MemoryStore() : nil)
    let one = MQTTClient.connected(door, Self.composed, clean: false, expiry: 3600)
    let other = MQTTClient.connected(door, Self.decomposed, clean: false, expiry: 3600)
    #expect(other.take() == ["connack 0"])
    // Neither has taken the other's session over.
    one.subscribe("t", .atLeastOnce)
    other.publish("t", "x", .atLeastOnce, 1)
    for client in [one, other, one] { client.settle() }
    #expect(one.take() == ["connack 0", "suback 1 [1]", "publish t \"x\" 1"])
    for client in [one, other] { client.disconnect() }
    for id in [Self.composed, Self.decomposed] {
      #expect(MQTTClient.connected(door, id, clean: false, expiry: 3600).take() == ["connack 0 present"])
    }
  }

  @Test func keysOfDifferentBytesAreDifferent() {
    let keys = [Self.composed, Self.decomposed].map { MQTTHub.Key(identity: "i", clientID: $0) }
    #expect(keys[0] != keys[1])
    #expect(Set(keys).count == 2)
    for key in keys {
      #expect(key.encoded.withUnsafeBytes { MQTTHub.Key(decoding: $0) } == key)
    }
  }

  @Test(arguments: MQTTVersion.allCases) func emptyIdentifiersBecomeUniqueOnes(version: MQTTVersion) throws {
    let door = try DoorWorld([.mqtt])
    let clients = (0..<20).map { _ in MQTTClient.connected(door, "", version) }
    #expect(clients.allSatisfy { $0.take() == ["connack 0"] })
    let ids = clients.compactMap { $0.connack?.properties.string(.assignedClientIdentifier) }
    #expect(Set(ids).count == (version == .v5 ? 20 : 0))
    // None has taken over another's connection.
    for client in clients { client.send(.pingreq) }
    for client in clients {
      client.settle()
      #expect(client.take() == ["pingresp"])
    }
  }
}
