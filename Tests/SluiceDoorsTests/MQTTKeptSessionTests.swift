import SluiceMQTT
import TestSupport
import Testing

@testable import SluiceDoors

/// Sessions in their stored form.
@Suite struct MQTTKeptSessionTests {
  private static func session(topics: Int) -> MQTTKeptSession {
    var session = MQTTKeptSession(
      state: MQTTSessionState().encoded(), producer: 7, topics: [:], positions: [:], exact: [:], expiry: 60,
      leftAt: 1000)
    for number in 0..<topics {
      session.topics[UInt32(number)] = MQTTKnownTopic(name: "sensors.room-\(number).value", epoch: 5)
      session.positions[UInt16(number), default: MQTTPositions()].offsets[UInt32(number)] = UInt64(number)
      session.exact[UInt64(number)] = MQTTExactPlace(topic: "sensors.t", sequence: UInt64(number))
    }
    session.will = MQTTConnect.Will(topic: "gone", payload: [1, 2, 3], qos: .atLeastOnce, isRetained: true)
    session.will?.properties.append(.willDelay, 5)
    return session
  }

  @Test func comesBackAsItWas() throws {
    for topics in [0, 1, 10] {
      let session = Self.session(topics: topics)
      #expect(try MQTTKeptSession(decoding: session.encoded) == session)
    }
    var connected = Self.session(topics: 1)
    connected.leftAt = nil
    connected.will = nil
    #expect(try MQTTKeptSession(decoding: connected.encoded) == connected)
    #expect(connected.expires == nil)
    connected.leftAt = 1000
    #expect(connected.expires == 61_000)
    connected.expiry = .max
    #expect(connected.expires == nil)
  }

  @Test func aSessionWithTenTopicsTakesLessThanAKiB() {
    var session = Self.session(topics: 10)
    (session.exact, session.will) = ([:], nil)
    #expect(session.encoded.count < 700)
  }

  @Test func aPackedSessionComesBackAsItWas() {
    var shared = MQTTSharedTopics()
    var packed: [MQTTPackedSession] = []
    for topics in [0, 1, 10, 300] {
      let session = Self.session(topics: topics)
      packed.append(MQTTPackedSession(session, &shared))
      #expect(packed.last?.session(shared) == session)
    }
    // Each topic is stored once, and removed with the last session that has a position in it.
    #expect(shared.count == 300)
    packed.removeLast().release(from: &shared)
    #expect(shared.count == 10)
    #expect(packed[2].session(shared) == Self.session(topics: 10))
    let other = MQTTPackedSession(Self.session(topics: 20), &shared)
    #expect(other.session(shared) == Self.session(topics: 20))
    #expect(packed[1].session(shared) == Self.session(topics: 1))
    for session in packed + [other] { session.release(from: &shared) }
    #expect(shared.count == 0)
  }

  @Test func aPackedSessionWithTenTopicsTakesLittle() {
    var session = Self.session(topics: 10)
    (session.exact, session.will) = ([:], nil)
    var shared = MQTTSharedTopics()
    #expect(MQTTPackedSession(session, &shared).bytes.count < 200)
  }

  @Test func whatNoBrokerHasWrittenIsRefusedAndDoesNoHarm() throws {
    var random = SeededRandom.printed()
    let bytes = Self.session(topics: 3).encoded
    for length in bytes.indices {
      #expect(throws: (any Error).self) { try MQTTKeptSession(decoding: Array(bytes[..<length])) }
    }
    for _ in 0..<5000 {
      var damaged = bytes
      for _ in 0..<3 {
        damaged[.random(in: damaged.indices, using: &random)] = .random(in: 0...255, using: &random)
      }
      _ = try? MQTTKeptSession(decoding: damaged)
    }
  }
}
