import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import TestSupport
import Testing

/// Clients that go before the broker has answered their CONNECT, wherever the claims to their sessions have come by then: on one node and in a cluster.
@Suite struct MQTTGivenUpTests {
  enum Deployment: CaseIterable {
    case inMemory, stored, cluster

    func stage() throws -> any MQTTStage {
      switch self {
      case .inMemory: try DoorWorld([.mqtt])
      case .stored: try DoorWorld([.mqtt], store: MemoryStore())
      case .cluster: try DoorNodes()
      }
    }

    /// The listener for a client.
    func door(_ number: Int) -> Int { self == .cluster ? number % 3 : 1 }
  }

  @Test(arguments: Deployment.allCases, [false, true])
  func aSessionIsAsItWas(deployment: Deployment, isHeld: Bool) throws {
    let stage = try deployment.stage()
    func session(_ id: String, _ number: Int) -> MQTTClient {
      let client = MQTTClient.connected(
        stage, id, at: deployment.door(number), clean: false, expiry: 3600)
      #expect(client.await("connack"))
      return client
    }
    func run(_ clients: MQTTClient..., for time: Duration = .seconds(1)) {
      for _ in 0..<Int(time / .milliseconds(100)) { for client in clients { client.settle() } }
    }
    var client = session("c", 0)
    client.subscribe("t", .atLeastOnce)
    for round in 0..<20 {
      if !isHeld { client.lose() }
      run(client, for: .milliseconds(300))
      let hasty = MQTTClient(stage, at: deployment.door(round))
      var properties = MQTTProperties()
      properties.append(.sessionExpiry, 3600)
      hasty.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false, properties: properties)))
      stage.settle(.microseconds(250 * round))
      hasty.bytes.abort()
      run(client, for: .seconds(2))
      client = session("c", round + 1)
      #expect(client.take().first == "connack 0 present", "round \(round)")
    }
    let publisher = session("p", 1)
    publisher.publish("t", "x", .atLeastOnce, 1)
    run(publisher, client)
    #expect(client.take().filter { $0.hasPrefix("publish") } == ["publish t \"x\" 1"])
  }
}
