import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceTLS
import SluiceWebSocket
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// MQTT clients for which the broker has no connection left. They get a CONNACK that says so, and cost little until then.
@Suite struct MQTTRefusalTests {
  enum Limit: CaseIterable {
    case inAll, perAddress, perIdentity
  }

  /// A broker whose limit is one client.
  private static func full(_ limit: Limit = .perAddress, _ doors: [Door] = [.mqtt]) throws -> DoorWorld {
    var policy: AccessPolicy?
    if limit == .perIdentity {
      policy = AccessPolicy()
      policy?.users["u"] = PasswordHash(of: "p", cost: .init(logN: 4, r: 1, p: 1))
    }
    return try DoorWorld(doors, access: policy) {
      switch limit {
      case .inAll: $0.limits.connections = 1
      case .perAddress: $0.limits.connectionsPerAddress = 1
      case .perIdentity: $0.limits.connectionsPerIdentity = 1
      }
    }
  }

  private static func client(_ door: DoorWorld, _ version: MQTTVersion = .v5) -> MQTTClient {
    MQTTClient.connected(door, "c", version, user: ("u", "p"))
  }

  @Test(arguments: Limit.allCases, MQTTVersion.allCases)
  func aClientTooManyIsTold(limit: Limit, version: MQTTVersion) throws {
    let door = try Self.full(limit)
    #expect(Self.client(door).take() == ["connack 0"])
    let second = MQTTClient.connected(door, "second", version, user: ("u", "p"))
    #expect(second.bytes.hasEnded)
    // The return code of 3.1.1 is 3, which the tests' decoder converts to the reason of MQTT 5.
    let code = version == .v5 ? MQTTReason.quotaExceeded : .serverUnavailable
    #expect(second.take() == ["connack \(code.rawValue)"])
    guard version == .v5 else { return }
    let reason = try #require(second.connack?.properties.string(.reasonString))
    #expect(reason.contains("limit"), "\(reason)")
  }

  @Test func aClientTooManyOfAWebSocketIsTold() throws {
    let door = try Self.full(.perAddress, [.mqtt, .webSocket])
    _ = Self.client(door)
    let second = door.connect(2)
    second.send(WebSocketRequest(host: "b", path: "/", subprotocols: ["mqtt"]).bytes)
    door.settle()
    var (connect, frame): ([UInt8], [UInt8]) = ([], [])
    MQTTPacket.connect(MQTTConnect(.v5, clientID: "w")).encode(into: &connect, .v5)
    connect.withUnsafeBytes {
      WebSocketEncoder.append(.binary, $0, mask: WebSocketMask((1, 2, 3, 4)), to: &frame)
    }
    second.send(frame)
    door.settle()
    let answer = second.take()
    let end = try #require(answer.firstRange(of: Array("\r\n\r\n".utf8))).upperBound
    // A binary message, then CONNACK with 0x97, then the Close frame.
    #expect(answer[end] == 0x82)
    #expect(answer[(end + 2)...].first == 0x20)
    #expect(answer[(end + 2)...].dropFirst(3).first == 0x97)
    #expect(answer.contains(0x88))
  }

  /// CONNECT arrives byte by byte, long after the connection was refused.
  @Test func aSlowClientIsToldToo() throws {
    let door = try Self.full()
    _ = Self.client(door)
    let slow = MQTTClient(door, .v5)
    door.settle(.seconds(5))
    #expect(!slow.bytes.hasEnded)
    var connect: [UInt8] = []
    MQTTPacket.connect(MQTTConnect(.v5, clientID: "slow")).encode(into: &connect, .v5)
    for byte in connect {
      slow.bytes.send([byte])
      slow.settle()
    }
    #expect(slow.take() == ["connack 151"])
    #expect(slow.bytes.hasEnded)
  }

  @Test func aClientThatSendsNothingIsDroppedInTime() throws {
    let door = try Self.full()
    _ = Self.client(door)
    let silent = door.connect(1)
    door.settle(.seconds(9))
    #expect(!silent.hasEnded)
    door.settle(.seconds(2))
    #expect(silent.hasEnded)
    #expect(silent.received.isEmpty)
  }

  @Test func whatIsNoCONNECTEndsTheConnection() throws {
    let door = try Self.full()
    _ = Self.client(door)
    let other = door.connect(1)
    other.send("GET / HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle()
    #expect(other.hasEnded)
    let early = door.connect(1)
    early.close()
    door.settle(.seconds(1))
    #expect(door.waitingRefusals == 0)
  }

  /// A flood of connections that send nothing: those that have waited longest are closed, and a client that sends CONNECT still gets its CONNACK.
  @Test func aFloodOfRefusedConnectionsIsBounded() throws {
    let door = try Self.full()
    _ = Self.client(door)
    let flood = (0..<MQTTRefusal.limit + 20).map { _ in door.connect(1) }
    door.settle(.seconds(1))
    #expect(flood.count { !$0.hasEnded } == MQTTRefusal.limit)
    #expect(flood.prefix(20).allSatisfy { $0.hasEnded })
    #expect(door.waitingRefusals == MQTTRefusal.limit)
    #expect(MQTTClient.connected(door, "late").take() == ["connack 151"])
    door.settle(.seconds(12))
    #expect(flood.allSatisfy { $0.hasEnded })
    #expect(door.waitingRefusals == 0)
  }

  /// Refused connections don't count towards the limit: once there is room, the next client is served.
  @Test func aRefusedConnectionTakesNoRoom() throws {
    let door = try Self.full()
    let first = Self.client(door)
    let silent = door.connect(1)
    first.disconnect()
    door.settle(.seconds(1))
    #expect(!silent.hasEnded)
    #expect(Self.client(door).take() == ["connack 0"])
  }
}
