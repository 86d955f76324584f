import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceSimulation
import SluiceWebSocket
import SluiceWire
import TestSupport
import Testing

/// A client that speaks the native protocol in WebSocket messages.
private final class WebSocketClient {
  let bytes: ByteClient
  private let door: DoorWorld
  private var decoder = WebSocketDecoder(
    .client, limits: WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1))
  private var frames = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)
  private(set) var received: [(header: FrameHeader, body: [UInt8])] = []
  private(set) var messages = 0
  private(set) var pongs: [[UInt8]] = []
  private(set) var closed: WebSocketCloseCode?

  init(_ door: DoorWorld, _ bytes: ByteClient) {
    self.door = door
    self.bytes = bytes
  }

  /// Returns a client whose handshake is done. Unless it is `raw`, the broker has welcomed it.
  static func open(_ door: DoorWorld, raw: Bool = false) throws -> WebSocketClient {
    let client = WebSocketClient(door, door.connect(1))
    let request = WebSocketRequest(host: "broker", path: "/", subprotocols: ["other", "sluice.1"])
    client.bytes.send(request.bytes)
    door.settle()
    let answer = String(decoding: client.bytes.take(), as: UTF8.self)
    try #require(answer.hasPrefix("HTTP/1.1 101 "))
    #expect(answer.contains("Sec-WebSocket-Protocol: sluice.1\r\n"))
    #expect(answer.hasSuffix("\r\n\r\n"))
    guard !raw else { return client }
    client.send(Hello(maximumFrame: 1 << 20, keepalive: 30_000, name: "page"), stream: 0)
    client.settle()
    try #require(client.types == [.welcome])
    return client
  }

  var types: [FrameType] { received.map(\.header.type) }

  func forget() { received = [] }

  func send(_ frame: some Frame, stream: UInt32) { send(message: frame.encoded(stream: stream)) }

  func send(message: [UInt8], opcode: WebSocketOpcode = .binary, isFinal: Bool = true) {
    bytes.send(Self.frame(message, opcode, isFinal: isFinal))
  }

  static func frame(_ payload: [UInt8], _ opcode: WebSocketOpcode, isFinal: Bool = true) -> [UInt8] {
    var frame: [UInt8] = []
    payload.withUnsafeBytes {
      WebSocketEncoder.append(
        opcode, $0, isFinal: isFinal, mask: WebSocketMask((1, 2, 3, 4)), to: &frame)
    }
    return frame
  }

  func settle(_ time: Duration = .milliseconds(100)) {
    door.settle(time)
    var chunk = bytes.take()
    do {
      try chunk.withUnsafeMutableBytes { chunk in
        try decoder.decode(chunk) { event in
          switch event {
          case .part(_, let part, _, let isLast, _):
            if isLast { messages += 1 }
            _ = try? frames.decode(UnsafeRawBufferPointer(part)) { header, body in
              received.append((header, Array(body)))
              return true
            }
          case .pong(let payload): pongs.append(Array(payload))
          case .close(let code, _): closed = code
          case .ping: break
          }
        }
      }
    } catch {
      Issue.record("the broker has sent what a client refuses: \(error)")
    }
  }
}

@Suite struct WebSocketDoorTests {
  private static func publish(_ payloads: [[UInt8]], from sequence: UInt64 = 0) -> [UInt8] {
    var builder = BatchBuilder()
    for payload in payloads { payload.withUnsafeBytes { builder.append($0) } }
    return builder.publishFrame(from: sequence, stream: 1)
  }

  @Test func framesOfTheNativeProtocolGoBothWays() throws {
    let door = try DoorWorld([.webSocket])
    let (producer, subscriber) = (try WebSocketClient.open(door), try WebSocketClient.open(door))
    subscriber.send(Subscribe(topic: "t", grantedThrough: 10), stream: 1)
    subscriber.settle()
    producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    producer.settle()
    producer.send(message: Self.publish([[1, 2], [3]]))
    producer.settle()
    subscriber.settle()
    #expect(producer.types.last == .ack)
    let delivered = try #require(subscriber.received.last { $0.header.type == .deliver })
    #expect(delivered.body.suffix(5) == [1, 0, 0, 0, 3])
  }

  @Test func messagesMayBeCutAnywhereAndControlFramesStandBetweenTheirParts() throws {
    let door = try DoorWorld([.webSocket])
    let client = try WebSocketClient.open(door)
    client.forget()
    let bytes = Ping(token: 7).encoded(stream: 0) + Ping(token: 8).encoded(stream: 0)
    for (index, byte) in bytes.enumerated() {
      client.send(
        message: [byte], opcode: index == 0 ? .binary : .continuation, isFinal: index == bytes.count - 1)
      if index == 5 { client.send(message: [9], opcode: .ping) }
      if index % 7 == 0 { client.settle() }
    }
    client.settle()
    #expect(client.types == [.pong, .pong])
    #expect(client.pongs == [[9]])
  }

  /// A message of megabytes for a client that reads in between, through a network that accepts few bytes at a time.
  @Test(arguments: 1...5) func recordsOfAnySizeArriveWhole(seed: UInt64) throws {
    let door = try DoorWorld(seed: seed, [.webSocket], conditions: SimulatedConditions())
    let client = try WebSocketClient.open(door)
    client.send(Subscribe(topic: "t", grantedThrough: .max), stream: 2)
    client.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    client.settle(.seconds(1))
    let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    client.bytes.isPaused = true
    client.send(message: Self.publish([large, [5], large]))
    client.send(message: [1], opcode: .ping)
    client.settle(.seconds(2))
    client.bytes.isPaused = false
    client.settle(.seconds(5))
    let bodies = client.received.filter { $0.header.type == .deliver }.flatMap { $0.body }
    let count = bodies.count
    #expect(count >= 600_001)
    #expect(client.pongs == [[1]])
    #expect(Array(bodies.suffix(large.count)) == large)
  }

  @Test func aClientOfTheDoorIsNamedByItsScheme() throws {
    let door = try DoorWorld([.webSocket])
    #expect(door.addresses[1].description.hasPrefix("ws://127.0.0.1:"))
    let native = door.connect(0)
    native.send(Hello(maximumFrame: 1 << 20, keepalive: 30_000, name: "program").encoded(stream: 0))
    let client = try WebSocketClient.open(door)
    client.send(ConnectionList(limit: 10), stream: 1)
    client.settle()
    let answer = try #require(client.received.last { $0.header.type == .connections })
    let text = String(decoding: answer.body, as: UTF8.self)
    #expect(text.contains("ws://"))
    #expect(text.split(separator: "ws://").count == 2)
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\nHost: b\r\n\r\n", "426"),
    ("POST / HTTP/1.1\r\nHost: b\r\n\r\n", "405"),
    ("SLCE and so on\r\n\r\n", "400"),
    (
      "GET / HTTP/1.1\r\nHost: b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: other\r\n\r\n", "400"
    ),
    ("GET / HTTP/1.1\r\nHost: b\r\nX: \(String(repeating: "x", count: 9000))\r\n\r\n", "431"),
  ]) func requestsThatOpenNoWebSocketAreAnswered(request: String, status: String) throws {
    let door = try DoorWorld([.webSocket])
    let client = door.connect(1)
    client.send(request)
    door.settle(.seconds(2))
    #expect(client.text.hasPrefix("HTTP/1.1 \(status) "), "\(client.text)")
    #expect(client.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }

  @Test func pagesOfOtherOriginsAreRefused() throws {
    var options = DoorOptions()
    options.origins = ["https://example.org"]
    func status(_ origin: String?, _ options: DoorOptions) throws -> Substring {
      let door = try DoorWorld([.webSocket], options: options)
      let client = door.connect(1)
      client.send(
        WebSocketRequest(host: "b", path: "/", subprotocols: ["sluice.1"], origin: origin).bytes)
      door.settle()
      return client.text.dropFirst(9).prefix(3)
    }
    #expect(try status("https://example.org", options) == "101")
    #expect(try status("https://evil.example", options) == "403")
    #expect(try status(nil, options) == "101")
    #expect(try status("https://example.org", DoorOptions()) == "403")
    options.allowsAnyOrigin = true
    #expect(try status("https://evil.example", options) == "101")
  }

  @Test func aHandshakeThatNeverEndsIsGivenUp() throws {
    let door = try DoorWorld([.webSocket]) { $0.limits.handshake = .seconds(3) }
    let client = door.connect(1)
    for byte in "GET / HTTP/1.1\r\nHost: b\r\n" {
      client.send(String(byte))
      door.settle(.milliseconds(200))
    }
    door.settle(.seconds(3))
    #expect(client.hasEnded)
    #expect(client.text.hasPrefix("HTTP/1.1 408 "))
    #expect(door.broker.metrics[.handshakeTimeouts] == 1)
  }

  @Test func bothSidesCloseWithAFrame() throws {
    let door = try DoorWorld([.webSocket])
    let (leaving, other) = (try WebSocketClient.open(door), try WebSocketClient.open(door))
    leaving.send(message: [3, 232], opcode: .close)
    leaving.settle(.seconds(1))
    #expect(leaving.closed == .normal)
    #expect(leaving.bytes.hasEnded)
    #expect(door.broker.metrics[.connections] == 1)
    door.broker.stop()
    other.settle(.seconds(1))
    #expect(other.closed == .normal)
  }

  @Test(arguments: [
    (WebSocketClient.frame([1], .text), WebSocketCloseCode.unsupportedData),
    ([0x82, 0x01, 0x00], .protocolError),
    (WebSocketClient.frame([1], .continuation), .protocolError),
  ]) func violationsEndTheConnectionWithTheirCode(frame: [UInt8], code: WebSocketCloseCode) throws {
    let door = try DoorWorld([.webSocket])
    let client = try WebSocketClient.open(door)
    client.bytes.send(frame)
    client.settle(.seconds(1))
    #expect(client.closed == code)
    #expect(client.bytes.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }

  @Test func whatIsNotTheNativeProtocolIsRefusedAsByAnyConnection() throws {
    let door = try DoorWorld([.webSocket])
    let client = try WebSocketClient.open(door, raw: true)
    client.send(message: Array("GET / HTTP/1.1\r\n".utf8))
    client.settle(.seconds(2))
    #expect(client.types == [.error])
    #expect(client.bytes.hasEnded)
  }

  @Test func aClientThatReadsNoPongsIsReadNoMore() throws {
    let door = try DoorWorld([.webSocket])
    let client = try WebSocketClient.open(door)
    client.bytes.isPaused = true
    let ping = WebSocketClient.frame([UInt8](repeating: 1, count: 125), .ping)
    let flood = (0..<20_000).flatMap { _ in ping }
    client.bytes.send(flood)
    door.settle(.seconds(5))
    // Pings that the broker has read are answered. All others are still in the network.
    client.bytes.isPaused = false
    client.settle(.seconds(20))
    #expect(client.pongs.count == 20_000)
  }

  @Test func mqttGoesThroughItAsWell() throws {
    let door = try DoorWorld([.webSocket])
    let client = door.connect(1)
    client.send(WebSocketRequest(host: "b", path: "/mqtt", subprotocols: ["mqtt"]).bytes)
    door.settle()
    let answer = String(decoding: client.take(), as: UTF8.self)
    #expect(answer.contains("Sec-WebSocket-Protocol: mqtt\r\n"))
    // CONNECT of MQTT 3.1.1, split into two messages, and PINGREQ.
    let connect: [UInt8] = [0x10, 13, 0, 4] + Array("MQTT".utf8) + [4, 2, 0, 60, 0, 1] + Array("c".utf8)
    client.send(WebSocketClient.frame(Array(connect[..<7]), .binary))
    client.send(WebSocketClient.frame(Array(connect[7...]) + [0xC0, 0], .binary))
    door.settle()
    // CONNACK and PINGRESP.
    let payloads = client.take().filter { $0 != 0x82 }
    #expect(payloads.contains([0x20, 2, 0, 0]))
    #expect(payloads.contains([0xD0, 0]))
    client.send(WebSocketClient.frame([0xE0, 0], .binary))
    door.settle(.seconds(1))
    #expect(client.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }
}
