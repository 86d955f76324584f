import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceTopics
import SluiceWebSocket
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// WebSocket clients that compress their messages and get compressed messages from the broker.
@Suite struct CompressedDoorTests {
  private static var options: DoorOptions {
    var options = DoorOptions()
    options.compressesWebSockets = true
    return options
  }

  /// Lines that have much text in common, as records often do.
  private static func lines(_ count: Int) -> [UInt8] {
    Array((0..<count).map { "{\"sensor\": \($0 % 7), \"value\": \($0 &* 31)}\n" }.joined().utf8)
  }

  @Test func messagesOfMQTTAreCompressedBothWays() throws {
    let door = try DoorWorld([.webSocket], options: Self.options)
    let client = try CompressedClient.open(door, "mqtt")
    // CONNECT of MQTT 3.1.1, and SUBSCRIBE to t at QoS 0.
    client.send([0x10, 13, 0, 4] + Array("MQTT".utf8) + [4, 2, 0, 60, 0, 1] + Array("c".utf8))
    client.send([0x82, 6, 0, 1, 0, 1, UInt8(ascii: "t"), 0])
    client.settle()
    #expect(client.take() == [0x20, 2, 0, 0, 0x90, 3, 0, 1, 0])
    #expect(client.compressed == 0, "so few bytes don't get fewer")
    let lines = Self.lines(100)
    let length = lines.count + 3
    let publish: [UInt8] =
      [0x30, UInt8(length & 0x7F | 0x80), UInt8(length >> 7), 0, 1, UInt8(ascii: "t")] + lines
    client.send(publish)
    client.settle()
    #expect(client.take() == publish)
    #expect(client.compressed > 0)
    #expect(client.wireBytes < publish.count / 2)
    #expect(client.bytes.hasEnded == false)
  }

  /// The network accepts all bytes at once, so it never reports that it is writable again. The loop does other work in between.
  @Test func aLargeRecordArrivesWithoutAnythingElseHappening() throws {
    let door = try DoorWorld([.webSocket], options: Self.options)
    let (producer, subscriber) = (
      try CompressedClient.open(door, "sluice.1"), try CompressedClient.open(door, "sluice.1")
    )
    for client in [producer, subscriber] {
      client.send(Hello(maximumFrame: 1 << 20, keepalive: 30_000, name: "page").encoded(stream: 0))
    }
    subscriber.send(Subscribe(topic: "t", grantedThrough: .max).encoded(stream: 2))
    producer.send(PublishOpen(topic: "t", acknowledgement: .received).encoded(stream: 1))
    door.settle()
    let lines = Self.lines(20_000)
    producer.send(Self.publish(lines, sequence: 0))
    subscriber.settle(.seconds(2))
    #expect(subscriber.records == [lines])
  }

  /// Megabytes for a client that reads in between, through a network that accepts few bytes at a time.
  @Test(arguments: 1...5) func recordsOfAnySizeArriveWhole(seed: UInt64) throws {
    let door = try DoorWorld(
      seed: seed, [.webSocket], options: Self.options, conditions: SimulatedConditions())
    let client = try CompressedClient.open(door, "sluice.1", windowBits: Int(seed) + 8)
    client.send(Hello(maximumFrame: 1 << 20, keepalive: 30_000, name: "page").encoded(stream: 0))
    client.send(Subscribe(topic: "t", grantedThrough: .max).encoded(stream: 2))
    client.send(PublishOpen(topic: "t", acknowledgement: .received).encoded(stream: 1))
    client.settle(.seconds(1))
    var random = TestSupport.SeededRandom(seed: seed)
    let payloads = [Self.lines(20_000), [5], random.bytes(300_000), [], Self.lines(3)]
    client.bytes.isPaused = true
    for (index, payload) in payloads.enumerated() {
      client.send(Self.publish(payload, sequence: UInt64(index)))
    }
    client.sendPing()
    client.settle(.seconds(2))
    client.bytes.isPaused = false
    client.settle(.seconds(10))
    #expect(client.records == payloads)
    #expect(client.pongs == 1)
    #expect(client.compressed > 0)
  }

  private static func publish(_ payload: [UInt8], sequence: UInt64) -> [UInt8] {
    var builder = BatchBuilder()
    payload.withUnsafeBytes { builder.append($0) }
    return builder.publishFrame(from: sequence, stream: 1)
  }

  @Test func aDoorWithoutTheSettingDoesNotCompress() throws {
    let door = try DoorWorld([.webSocket])
    let client = CompressedClient(door)
    #expect(client.open("mqtt").contains("Sec-WebSocket-Extensions") == false)
    client.send([UInt8](repeating: 0, count: 300))
    client.settle(.seconds(1))
    #expect(client.closed == .protocolError)
  }

  @Test func dataThatCannotBeInflatedEndsTheConnection() throws {
    let door = try DoorWorld([.webSocket], options: Self.options)
    let client = try CompressedClient.open(door, "mqtt")
    client.send(payload: [0x07])
    client.settle(.seconds(1))
    #expect(client.closed == .invalidPayload)
    #expect(client.bytes.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }

  /// The subprotocols only have binary messages, so a text message is rejected with any content.
  @Test func compressedTextIsRefused() throws {
    let door = try DoorWorld([.webSocket], options: Self.options)
    let client = try CompressedClient.open(door, "mqtt")
    client.send(payload: [0x07], opcode: .text)
    client.settle(.seconds(1))
    #expect(client.closed == .unsupportedData)
  }

  @Test func aClientThatDoesNotOfferItIsServedWithout() throws {
    let door = try DoorWorld([.webSocket], options: Self.options)
    let client = CompressedClient(door)
    #expect(client.open("mqtt", offer: nil).contains("Sec-WebSocket-Extensions") == false)
    client.send(payload: [0x10, 13, 0, 4] + Array("MQTT".utf8) + [4, 2, 0, 60, 0, 1, 99], rsv: false)
    client.settle()
    #expect(client.take() == [0x20, 2, 0, 0])
  }
}

/// A client that offers compression.
private final class CompressedClient {
  let bytes: ByteClient
  private let door: DoorWorld
  private var decoder = WebSocketDecoder(
    .client, limits: WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1), compression: true)
  private let messages = WebSocketMessageReader(InflaterPool())
  private let deflater = Deflater(windowBits: 12)
  private var frames = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)
  private var received: [UInt8] = []
  /// The number of compressed messages that arrived.
  private(set) var compressed = 0
  private(set) var wireBytes = 0
  private(set) var pongs = 0
  private(set) var closed: WebSocketCloseCode?

  init(_ door: DoorWorld) {
    self.door = door
    bytes = door.connect(1)
  }

  static func open(
    _ door: DoorWorld, _ subprotocol: String, windowBits: Int = 15
  ) throws -> CompressedClient {
    let client = CompressedClient(door)
    let limit = windowBits == 15 ? "" : "; server_max_window_bits=\(windowBits)"
    let answer = client.open(subprotocol, offer: "permessage-deflate; client_max_window_bits\(limit)")
    let terms = "permessage-deflate; server_no_context_takeover; client_no_context_takeover\(limit)"
    try #require(answer.contains("Sec-WebSocket-Extensions: \(terms)\r\n"), "\(answer)")
    return client
  }

  /// Returns the response to the request.
  func open(_ subprotocol: String, offer: String? = "permessage-deflate") -> String {
    var request = String(
      decoding: WebSocketRequest(host: "b", path: "/", subprotocols: [subprotocol]).bytes.dropLast(2),
      as: UTF8.self)
    if let offer { request += "Sec-WebSocket-Extensions: \(offer)\r\n" }
    bytes.send(request + "\r\n")
    door.settle(.seconds(1))
    return String(decoding: bytes.take(), as: UTF8.self)
  }

  /// Sends a message. Compresses it unless that makes it no shorter.
  func send(_ message: [UInt8]) {
    var room = [UInt8](repeating: 0, count: message.count + 4)
    let count = message.withUnsafeBytes { message in
      room.withUnsafeMutableBytes { deflater.deflate(message, into: $0) }
    }
    send(payload: count.map { Array(room[..<$0]) } ?? message, rsv: count != nil)
  }

  func send(payload: [UInt8], rsv isCompressed: Bool = true, opcode: WebSocketOpcode = .binary) {
    var frame: [UInt8] = []
    payload.withUnsafeBytes {
      WebSocketEncoder.append(
        opcode, $0, isCompressed: isCompressed, mask: WebSocketMask((1, 2, 3, 4)), to: &frame)
    }
    bytes.send(frame)
  }

  func sendPing() {
    var frame: [UInt8] = []
    WebSocketEncoder.append(
      .ping, UnsafeRawBufferPointer(start: nil, count: 0), mask: WebSocketMask((1, 2, 3, 4)), to: &frame)
    bytes.send(frame)
  }

  /// Takes the bytes of the messages that arrived.
  func take() -> [UInt8] {
    defer { received = [] }
    return received
  }

  /// The payloads of the records that arrived, each in a batch of its own.
  var records: [[UInt8]] {
    var payloads: [[UInt8]] = []
    _ = try? received.withUnsafeBytes { bytes in
      try frames.decode(bytes) { header, body throws(WireError) in
        guard header.type == .deliver else { return true }
        let (front, batch) = try DeliverHeader.decode(body)
        var records = BatchIterator(batch, count: front.count, time: 0)
        while let record = try records.next() { payloads.append(Array(record.body)) }
        return true
      }
    }
    return payloads
  }

  func settle(_ time: Duration = .milliseconds(100)) {
    door.settle(time)
    var chunk = bytes.take()
    wireBytes += chunk.count
    // No message of the broker is longer.
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536 + 1, alignment: 1)
    defer { room.deallocate() }
    do {
      try chunk.withUnsafeMutableBytes { chunk in
        try decoder.decode(chunk) { event throws(WebSocketError) in
          switch event {
          case .part(_, let part, let isFirst, let isLast, let isCompressed):
            if isFirst, isCompressed { compressed += 1 }
            let count = try messages.take(part, isCompressed: isCompressed, isLast: isLast, into: room)
            received += Array(room[..<count])
          case .pong: pongs += 1
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
