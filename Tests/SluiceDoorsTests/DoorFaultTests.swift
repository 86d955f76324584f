import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization
import Testing

/// What the broker reports of clients whose door has ended their connection.
@Suite struct DoorFaultTests {
  private final class Log: Sendable {
    private let events = Mutex<[BrokerEvent]>([])

    func append(_ event: BrokerEvent) { events.withLock { $0.append(event) } }

    /// The reasons and codes of all connections that were closed.
    var closed: [(reason: String, code: ErrorCode?)] {
      events.withLock(\.self).compactMap {
        if case .closed(_, let reason, let code, _) = $0 { (reason, code) } else { nil }
      }
    }
  }

  private let door: DoorWorld
  private let log = Log()

  init() throws {
    let log = log
    door = try DoorWorld([.http, .mqtt]) { $0.report = { log.append($0) } }
  }

  @Test(arguments: [
    ("nonsense\r\n\r\n", "the request line isn't METHOD TARGET HTTP/VERSION"),
    ("GET / HTTP/1.1\r\nHost: b\r\nX: \(String(repeating: "x", count: 9000))", "has more than 8192 bytes"),
    ("GET /topics/t HTTP/1.0\r\nHost: b\r\n\r\n", "only HTTP/1.1 is understood"),
  ]) func aRequestThatCannotBeReadIsAViolation(request: String, reason: String) throws {
    let client = door.connect(1)
    client.send(request)
    door.settle(.seconds(2))
    let closed = try #require(log.closed.first)
    #expect(closed.reason.contains(reason))
    #expect(closed.code == .malformedFrame)
  }

  @Test(arguments: [
    "GET /topics/t HTTP/1.1\r\nHost:", "POST /topics/t HTTP/1.1\r\nHost: b\r\nContent-Length: 10\r\n\r\nabc",
  ]) func aRequestThatNeverEndsIsToldAndCounted(request: String) throws {
    let client = door.connect(1)
    client.send("GET /topics HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle()
    client.send(request)
    door.settle(.seconds(70))
    #expect(client.text.contains("HTTP/1.1 408 "))
    let closed = try #require(log.closed.first)
    #expect(closed.code == .keepaliveTimeout)
    #expect(door.broker.metrics[.keepaliveTimeouts] == 1)
  }

  @Test func aClientThatLeavesByItselfIsNoFault() throws {
    let client = door.connect(1)
    client.send("GET /topics HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
    door.settle()
    // A request that was read and can't be served isn't one either.
    let other = door.connect(1)
    other.send("GET /nothing HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
    let mqtt = MQTTClient.connected(door, "m", at: 2)
    mqtt.send(.disconnect(MQTTNotice(.disconnect, .success)))
    door.settle(.seconds(10))
    #expect(log.closed.count == 3)
    #expect(
      log.closed.allSatisfy { $0.code == nil && $0.reason == "the client has closed it" }, "\(log.closed)")
  }

  @Test func aPacketThatCannotBeReadIsAViolation() throws {
    let client = MQTTClient.connected(door, "m", at: 2)
    client.bytes.send([0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
    door.settle(.seconds(10))
    let closed = try #require(log.closed.first)
    #expect(closed.code == .malformedFrame)
    #expect(!closed.reason.isEmpty && closed.reason != "the client has closed it")
  }

  @Test func aSilentClientOfMQTTIsCounted() throws {
    let client = MQTTClient.connected(door, "m", at: 2, keepAlive: 5)
    door.settle(.seconds(20))
    #expect(client.bytes.hasEnded)
    let closed = try #require(log.closed.first)
    #expect(closed.code == .keepaliveTimeout, "\(closed)")
    #expect(door.broker.metrics[.keepaliveTimeouts] == 1)
  }

  @Test func aSessionThatIsTakenOverSaysSo() throws {
    _ = MQTTClient.connected(door, "m", at: 2)
    _ = MQTTClient.connected(door, "m", at: 2)
    door.settle(.seconds(10))
    let closed = try #require(log.closed.first)
    #expect(closed.reason.contains("another connection has the same client identifier"))
    #expect(closed.code == nil)
  }
}
