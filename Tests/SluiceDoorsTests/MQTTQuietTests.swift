import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// Idle MQTT connections, which the gateway packs and restores when they become active.
@Suite struct MQTTQuietTests {
  @Test func aConnectionIsPackedWhenNothingHappensForAWhile() throws {
    let door = try DoorWorld([.mqtt], quietAfter: .milliseconds(200))
    let client = MQTTClient.connected(door, "c")
    client.subscribe("a/#")
    #expect(door.quietConnections == 0)
    client.settle(.seconds(2))
    #expect(door.quietConnections == 1)
    client.send(.pingreq)
    client.settle()
    #expect(door.quietConnections == 0)
    // A connection that was packed before stays unpacked for longer.
    client.settle(.seconds(2))
    #expect(door.quietConnections == 0)
    client.settle(.seconds(4))
    #expect(door.quietConnections == 1)
    #expect(client.take() == ["connack 0", "suback 1 [0]", "pingresp"])
  }

  /// While all connections are active, each search for idle ones comes later than the one before. A new connection makes it frequent again.
  @Test func looksAreFrequentAgainForANewConnection() throws {
    let door = try DoorWorld([.mqtt], quietAfter: .milliseconds(100))
    let busy = MQTTClient.connected(door, "busy")
    for _ in 0..<80 {
      busy.send(.pingreq)
      busy.settle(.milliseconds(50))
    }
    #expect(door.quietConnections == 0)
    _ = MQTTClient.connected(door, "new")
    door.settle(.milliseconds(350))
    #expect(door.quietConnections == 2)
  }

  /// A gateway exists as long as its link does. Keepalive on the link would cost memory and time for each idle client.
  @Test func theBrokerAsksADoorForNoSignsOfLife() throws {
    let door = try DoorWorld([.mqtt], quietAfter: .seconds(1)) { $0.limits.keepalive = 8_000 }
    let client = MQTTClient.connected(door, "c")
    client.settle(.seconds(3))
    let sent = door.broker.metrics[.bytesSent]
    for _ in 0..<60 {
      client.settle(.seconds(1))
      #expect(door.quietConnections == 1)
    }
    #expect(door.broker.metrics[.bytesSent] == sent)
    #expect(!client.bytes.hasEnded)
  }

  @Test(arguments: [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce])
  func messagesComeToPackedConnections(qos: MQTTQoS) throws {
    let door = try DoorWorld([.mqtt])
    let subscriber = MQTTClient.connected(door, "s")
    let publisher = MQTTClient.connected(door, "p")
    subscriber.subscribe("a/+", qos)
    for number in 1...5 {
      door.settle()
      #expect(door.quietConnections == 2)
      publisher.publish("a/\(number % 2)", "\(number)", qos, UInt16(number))
      for _ in 0..<3 { for client in [publisher, subscriber] { client.settle() } }
    }
    let received = subscriber.take().filter { $0.hasPrefix("publish") }
    #expect(received == (1...5).map { "publish a/\($0 % 2) \"\($0)\" \(qos.rawValue)" })
  }

  /// With a store, clients whose sessions or wills outlive the connection are packed too, and so are publishers.
  @Test func connectionsWithKeptSessionsArePacked() throws {
    let door = try DoorWorld([.mqtt], store: MemoryStore())
    let will = MQTTConnect.Will(topic: "gone", payload: [0x78])
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 60, will: will)
    client.subscribe("a/#", .atLeastOnce)
    client.publish("a/b", "1", .exactlyOnce, 1)
    for _ in 0..<10 { client.settle() }
    #expect(door.quietConnections == 1)
    client.publish("a/b", "2")
    for _ in 0..<10 { client.settle() }
    #expect(door.quietConnections == 1)
    #expect(
      client.take().filter { $0.hasPrefix("publish") } == ["publish a/b \"1\" 1", "publish a/b \"2\" 0"])
  }

  /// A message at QoS 1 that the client hasn't acknowledged is in flight, and so is half a packet.
  @Test func aConnectionWithSomethingUnderWayIsNotPacked() throws {
    let door = try DoorWorld([.mqtt])
    let subscriber = MQTTClient.connected(door, "s")
    subscriber.subscribe("a", .atLeastOnce)
    subscriber.acknowledges = false
    let publisher = try NativeClient(door)
    publisher.publish("a", ["m"], stream: 1)
    subscriber.settle()
    #expect(door.quietConnections == 0)
    subscriber.send(.acknowledgement(MQTTAcknowledgement(.puback, 1)))
    subscriber.settle()
    #expect(door.quietConnections == 1)
    subscriber.bytes.send([0xC0])
    subscriber.settle()
    #expect(door.quietConnections == 0)
    subscriber.bytes.send([0x00])
    subscriber.settle()
    #expect(door.quietConnections == 1)
    #expect(subscriber.take().last == "pingresp")
  }

  @Test func aPackedConnectionEndsLikeOthers() throws {
    let door = try DoorWorld([.mqtt])
    let watcher = MQTTClient.connected(door, "w")
    watcher.subscribe("gone/#")
    func will(_ name: String) -> MQTTConnect.Will { MQTTConnect.Will(topic: "gone/\(name)", payload: [0x78]) }
    let clients = ["silent", "lost", "replaced"].map {
      MQTTClient.connected(door, $0, keepAlive: $0 == "silent" ? 4 : 0, will: will($0))
    }
    door.settle()
    #expect(door.quietConnections == 4)
    clients[1].lose()
    watcher.settle()
    #expect(watcher.take().last == "publish gone/lost \"x\" 0")
    let other = MQTTClient.connected(door, "replaced")
    clients[2].settle()
    #expect(clients[2].take() == ["connack 0", "disconnect 142"])
    watcher.settle(.seconds(8))
    clients[0].settle()
    #expect(clients[0].take() == ["connack 0", "disconnect 141"])
    #expect(
      Set(watcher.take().suffix(2)) == ["publish gone/replaced \"x\" 0", "publish gone/silent \"x\" 0"])
    #expect(door.quietConnections == 2)
    door.broker.stop()
    other.settle(.seconds(1))
    #expect(other.take() == ["connack 0", "disconnect 139"])
  }

  /// Two brokers, one of which packs at every idle moment and one never: their clients get the same packets.
  @Test(arguments: 1...12 as ClosedRange<UInt64>) func clientsNoticeNothing(seed: UInt64) throws {
    let packing = Script(try DoorWorld([.mqtt]), seed)
    let plain = Script(try DoorWorld([.mqtt], quietAfter: .seconds(1_000_000)), seed)
    for step in 0..<120 {
      packing.step()
      plain.step()
      let (lines, expected) = (packing.take(), plain.take())
      #expect(lines == expected, "after step \(step)")
      if lines != expected { return }
    }
    #expect(packing.quietMoments > 100)
    #expect(plain.quietMoments == 0)
  }

  /// Clients whose random actions follow from a seed.
  private final class Script {
    private let door: DoorWorld
    private var random: TestSupport.SeededRandom
    private var clients: [MQTTClient] = []
    private var lastIdentifier: UInt16 = 0
    /// The number of packed connections, summed over all steps.
    private(set) var quietMoments = 0

    private static let topics = ["a", "a/b", "a/c", "b"]
    private static let filters = ["a", "a/+", "a/#", "#", "b", "$share/g/a/b"]

    init(_ door: DoorWorld, _ seed: UInt64) {
      self.door = door
      random = TestSupport.SeededRandom(seed: seed)
      for index in 0..<4 { clients.append(connect(index)) }
    }

    private func connect(_ index: Int) -> MQTTClient {
      let (version, isLasting) = (index % 2 == 0 ? MQTTVersion.v5 : .v311, index > 1)
      let will = MQTTConnect.Will(topic: "b", payload: [0x77], qos: .atLeastOnce)
      return MQTTClient.connected(
        door, "c\(index)", version, clean: !isLasting, expiry: isLasting ? 100 : 0,
        keepAlive: index == 0 ? 30 : 0, receiveMaximum: version == .v5 ? 3 : nil,
        will: index == 1 ? will : nil)
    }

    func step() {
      let index = Int.random(in: 0..<clients.count, using: &random)
      let client = clients[index]
      let qos = MQTTQoS(rawValue: UInt8.random(in: 0...2, using: &random)) ?? .atMostOnce
      lastIdentifier += 1
      switch Int.random(in: 0..<12, using: &random) {
      case 0, 1: client.subscribe(Self.filters.randomElement(using: &random) ?? "a", qos, lastIdentifier)
      case 2:
        let filter = Self.filters.randomElement(using: &random) ?? "a"
        client.send(.unsubscribe(MQTTUnsubscribe(lastIdentifier, [filter])))
      case 3: client.send(.pingreq)
      case 4: clients[0].settle(.seconds(Int64.random(in: 1...20, using: &random)))
      case 5: client.acknowledges.toggle()
      case 6:
        client.lose()
        clients[index] = connect(index)
      default:
        let topic = Self.topics.randomElement(using: &random) ?? "a"
        let isRetained = Int.random(in: 0..<8, using: &random) == 0
        let identifier = qos == .atMostOnce ? 0 : lastIdentifier
        client.publish(topic, "\(lastIdentifier)", qos, identifier, retained: isRetained)
      }
      for _ in 0..<3 { for client in clients { client.settle() } }
      quietMoments += door.quietConnections
    }

    /// The lines that each client got since the last call. Loops and overlapping subscriptions may run in another order, which also changes the
    /// identifiers of messages.
    func take() -> [[String]] {
      clients.map { client in
        client.take().map { $0.hasPrefix("pubrel") ? "pubrel" : $0 }.sorted()
      }
    }
  }
}
