import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceWebSocket
import SluiceWire
import Synchronization
import Testing

/// The broker's events about clients whose connection a gateway closed.
@Suite struct DoorFaultTests {
  private final class Log: Sendable {
    private let events = Mutex<[BrokerEvent]>([])

    func append(_ event: BrokerEvent) { events.withLock { $0.append(event) } }

    /// The reasons and codes of all connections that were closed, and the names of their clients.
    var closed: [(reason: String, code: ErrorCode?, name: String)] {
      events.withLock(\.self).compactMap {
        if case .closed(let client, let reason, let code, _) = $0 { (reason, code, client.name) } else { nil }
      }
    }
  }

  private let door: DoorWorld
  private let log = Log()

  init() throws {
    let log = log
    door = try DoorWorld([.http, .mqtt, .webSocket]) { $0.report = { log.append($0) } }
  }

  @Test(arguments: [
    ("nonsense\r\n\r\n", "the request line isn't METHOD TARGET HTTP/VERSION"),
    ("GET / HTTP/1.1\r\nHost: b\r\nX: \(String(repeating: "x", count: 9000))", "has more than 8192 bytes"),
    ("GET /topics/t HTTP/2.0\r\nHost: b\r\n\r\n", "only HTTP/1.1 and HTTP/1.0 are understood"),
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
    // A request that was read but can't be served is no fault either.
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

  /// Bytes of CONNECT, in MQTT 5 and 3.1.1, with a reserved flag.
  @Test(
    arguments: [
      ([0x10, 0x0D, 0, 4, 0x4D, 0x51, 0x54, 0x54, 5, 3, 0, 0x3C, 0, 0, 0], ["connack 129"]),
      ([0x10, 0x0C, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 3, 0, 0x3C, 0, 0], []),
    ] as [([UInt8], [String])]) func aMalformedCONNECTIsToldAndReported(bytes: [UInt8], told: [String]) throws
  {
    let client = MQTTClient(door, bytes[8] == 5 ? .v5 : .v311, at: 2)
    client.bytes.send(bytes)
    client.settle(.seconds(10))
    #expect(client.take() == told)
    #expect(client.bytes.hasEnded)
    let closed = try #require(log.closed.first)
    #expect(closed.code == .malformedFrame)
    #expect(closed.reason.contains("reserved"), "\(closed.reason)")
  }

  @Test(
    arguments: [
      // A missing option byte; a reserved bit of the options; no filter.
      [0x82, 6, 0, 1, 0, 0, 1, 0x61], [0x82, 7, 0, 1, 0, 0, 1, 0x61, 0xC0], [0x82, 3, 0, 1, 0],
    ] as [[UInt8]]) func aMalformedSUBSCRIBEIsToldAndReported(bytes: [UInt8]) throws
  {
    let client = MQTTClient.connected(door, "m", at: 2)
    _ = client.take()
    client.bytes.send(bytes)
    client.settle(.seconds(10))
    let codes = [MQTTReason.malformedPacket, .protocolError].map { "disconnect \($0.rawValue)" }
    let lines = client.take()
    #expect(lines.count == 1 && codes.contains(lines.first ?? ""), "\(lines)")
    let closed = try #require(log.closed.first)
    #expect(closed.code == .malformedFrame)
    #expect(closed.name == "m")
    #expect(!closed.reason.isEmpty && closed.reason != "the client has closed it")
  }

  /// A WebSocket client that has sent frames after its handshake.
  private func webSocket(_ subprotocol: String, _ frames: [UInt8]...) -> ByteClient {
    let client = door.connect(3)
    client.send(WebSocketRequest(host: "b", path: "/", subprotocols: [subprotocol]).bytes)
    door.settle()
    for frame in frames {
      client.send(frame)
      door.settle()
    }
    door.settle(.seconds(10))
    return client
  }

  private func frame(_ payload: [UInt8], _ opcode: WebSocketOpcode) -> [UInt8] {
    var frame: [UInt8] = []
    payload.withUnsafeBytes {
      WebSocketEncoder.append(opcode, $0, mask: WebSocketMask((1, 2, 3, 4)), to: &frame)
    }
    return frame
  }

  /// A frame without a mask, sent by a client of the native protocol and by a connected MQTT client.
  @Test(arguments: ["sluice.1", "mqtt"]) func aViolationOfTheWebSocketIsOne(subprotocol: String) throws {
    var connect: [UInt8] = []
    MQTTPacket.connect(MQTTConnect(.v5, clientID: "m")).encode(into: &connect, .v5)
    let client = webSocket(
      subprotocol, subprotocol == "mqtt" ? frame(connect, .binary) : [], [0x82, 1, 0])
    #expect(client.hasEnded)
    let closed = try #require(log.closed.first)
    #expect(closed.code == .malformedFrame)
    #expect(closed.reason == "a frame isn't masked; a client masks every frame (WebSocket close code 1002)")
  }

  @Test func aHandshakeThatIsRefusedIsAViolation() throws {
    let client = door.connect(3)
    client.send("GET / HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle(.seconds(10))
    #expect(client.hasEnded)
    let closed = try #require(log.closed.first)
    #expect(closed.code == .malformedFrame)
    #expect(closed.reason == "only WebSockets are served here: ask for Upgrade: websocket")
  }

  /// A reason that the client gives when it closes is no fault of the client.
  @Test func aWebSocketThatTheClientClosesIsNoFault() throws {
    _ = webSocket("sluice.1", frame([3, 232], .close))
    _ = webSocket("sluice.1", frame([3, 243] + Array("no memory".utf8), .close))
    let half = door.connect(3)
    half.send("GET / HTTP/1.1\r\n")
    door.settle()
    half.close()
    door.settle(.seconds(10))
    #expect(log.closed.count == 3)
    #expect(log.closed.allSatisfy { $0.code == nil }, "\(log.closed)")
    #expect(log.closed[0].reason == "the client has closed it")
    #expect(log.closed[1].reason.hasSuffix("the client has closed the WebSocket with 1011: no memory"))
    #expect(
      log.closed[2].reason.hasSuffix("the client closed the connection before its request was complete"))
  }

  /// For each gateway, the log contains the system's reason for the end of the connection.
  @Test(arguments: [1, 2]) func aConnectionThatIsResetSaysSo(index: Int) throws {
    let client = index == 1 ? door.connect(1) : MQTTClient.connected(door, "m", at: 2).bytes
    door.settle()
    client.abort()
    door.settle(.seconds(1))
    let closed = try #require(log.closed.first)
    #expect(closed.code == nil)
    #expect(closed.reason.contains("Connection reset by peer"), "\(closed.reason)")
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
