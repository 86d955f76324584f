import SluiceDoors
import SluiceMQTT
import TestSupport
import Testing

/// The limits on MQTT sessions in a cluster: all nodes together keep no more sessions than a single node.
@Suite struct MQTTClusterLimitTests {
  private static let full = MQTTReason.quotaExceeded.rawValue

  private static func nodes(_ change: (inout MQTTLimits) -> Void) throws -> DoorNodes {
    var limits = MQTTLimits()
    change(&limits)
    return try DoorNodes(limits: limits)
  }

  private static func session(_ nodes: DoorNodes, _ id: String, at index: Int) -> MQTTClient {
    let client = MQTTClient.connected(nodes, id, at: index, clean: false, expiry: 3600)
    #expect(client.await("connack"))
    return client
  }

  @Test func sessionsBeyondTheNumberAreRefusedAtEveryNode() throws {
    let nodes = try Self.nodes { $0.sessions = 2 }
    // Clients whose sessions end with their connections don't count.
    for number in 0..<4 {
      let client = MQTTClient.connected(nodes, "clean\(number)", at: number % 3)
      #expect(client.await("connack 0"))
    }
    for (index, id) in ["a", "b"].enumerated() {
      let client = Self.session(nodes, id, at: index)
      #expect(client.take() == ["connack 0"])
      client.disconnect()
    }
    #expect(Self.session(nodes, "c", at: 2).take() == ["connack \(Self.full)"])
    // Existing sessions resume, and may add subscriptions.
    let again = Self.session(nodes, "a", at: 2)
    again.subscribe("t", .atLeastOnce)
    #expect(again.await("suback"))
    #expect(again.take() == ["connack 0 present", "suback 1 [1]"])
    // After a session has ended, another one fits.
    MQTTClient.connected(nodes, "b", at: 0).disconnect()
    nodes.settle(.seconds(1))
    #expect(Self.session(nodes, "c", at: 1).take() == ["connack 0"])
  }

  /// Clients that connect to all nodes at the same time, each with a session.
  private static func twelve(_ nodes: DoorNodes) -> [MQTTClient] {
    let clients = (0..<12).map { MQTTClient(nodes, at: $0 % 3) }
    for (number, client) in clients.enumerated() {
      var properties = MQTTProperties()
      properties.append(.sessionExpiry, 3600)
      client.send(
        .connect(MQTTConnect(.v5, clientID: "c\(number)", cleanStart: false, properties: properties)))
    }
    return clients
  }

  /// No client has seen the others' sessions when it begins: the order in the log decides.
  @Test func sessionsThatBeginTogetherAreNoMoreThanThereMayBe() throws {
    let nodes = try Self.nodes { $0.sessions = 4 }
    let clients = Self.twelve(nodes)
    var answers: [String] = []
    for client in clients {
      #expect(client.await("connack"))
      client.settle()
      answers += client.take()
    }
    // A client that is refused gets that reason in CONNACK, and no other packet.
    #expect(answers.count == 12)
    #expect(answers.filter { $0 == "connack 0" }.count == 4)
    #expect(answers.filter { $0 == "connack \(Self.full)" }.count == 8)
    for (number, client) in clients.enumerated() where !client.bytes.hasEnded {
      client.disconnect()
      #expect(Self.session(nodes, "c\(number)", at: (number + 1) % 3).take() == ["connack 0 present"])
    }
  }

  /// Clients that leave their sessions before their refusal can arrive.
  @Test(arguments: [0, 1, 2, 3, 5, 8, 13, 21, 34, 55]) func sessionsThatAreLeftAtOnceAreNoMoreEither(
    milliseconds: Int
  ) throws {
    let nodes = try Self.nodes { $0.sessions = 4 }
    let clients = Self.twelve(nodes)
    nodes.settle(.milliseconds(milliseconds))
    for client in clients { client.send(.disconnect(MQTTNotice(.disconnect, .success))) }
    nodes.settle(.seconds(2))
    let present = (0..<12).filter {
      let client = Self.session(nodes, "c\($0)", at: 0)
      return client.take() == ["connack 0 present"]
    }
    #expect(present.count <= 4, "\(present)")
  }

  /// The session grows through new topics, so there is no SUBSCRIBE to refuse.
  @Test func aSessionThatGrowsBeyondTheLimitEndsWithAReason() throws {
    let nodes = try Self.nodes { $0.sessionBytes = 64 << 10 }
    let client = Self.session(nodes, "c", at: 0)
    client.subscribe("#", .atLeastOnce)
    let publisher = MQTTClient.connected(nodes, "p", at: 1)
    #expect(publisher.await("connack"))
    for number in 0..<400 {
      publisher.publish(
        "\(number)/" + String(repeating: "x", count: 200), "m", .atLeastOnce, UInt16(number + 1))
      publisher.settle(.milliseconds(10))
    }
    #expect(client.await("disconnect \(Self.full)"))
    // The ended session no longer counts.
    #expect(Self.session(nodes, "c", at: 2).take() == ["connack 0"])
  }
}
