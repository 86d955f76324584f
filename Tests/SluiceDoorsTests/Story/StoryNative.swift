import SluiceWebSocket
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// A connection of the native protocol. It carries plain bytes or WebSocket messages.
final class StoryConnection {
  let bytes: ByteClient
  private let door: DoorWorld
  private let wraps: Bool
  private var socket = WebSocketDecoder(
    .client, limits: WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1))
  private var decoder = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)

  init(_ door: DoorWorld, at index: Int, wraps: Bool) {
    self.door = door
    self.wraps = wraps
    bytes = door.connect(index)
    if wraps {
      bytes.send(WebSocketRequest(host: "broker", path: "/", subprotocols: ["sluice.1"]).bytes)
      door.settle()
      #expect(String(decoding: bytes.take(), as: UTF8.self).hasPrefix("HTTP/1.1 101 "))
    }
    send(Hello(maximumFrame: 1 << 24, keepalive: 0, name: "story").encoded(stream: 0))
    door.settle()
    #expect(take().first?.header.type == .welcome)
  }

  func send(_ frame: [UInt8]) {
    guard wraps else { return bytes.send(frame) }
    var message: [UInt8] = []
    frame.withUnsafeBytes {
      WebSocketEncoder.append(.binary, $0, isFinal: true, mask: WebSocketMask((1, 2, 3, 4)), to: &message)
    }
    bytes.send(message)
  }

  /// The frames that arrived since the last call.
  func take() -> [(header: FrameHeader, body: [UInt8])] {
    var frames: [(header: FrameHeader, body: [UInt8])] = []
    func read(_ chunk: UnsafeRawBufferPointer) throws {
      try decoder.decode(chunk) { header, body in
        frames.append((header, Array(body)))
        return true
      }
    }
    var chunk = bytes.take()
    do {
      try chunk.withUnsafeMutableBytes { chunk in
        guard wraps else { return try read(UnsafeRawBufferPointer(chunk)) }
        try socket.decode(chunk) { event in
          if case .part(_, let part, _, _, _) = event { try? read(UnsafeRawBufferPointer(part)) }
        }
      }
    } catch {
      Issue.record("the broker has sent what a client refuses: \(error)")
    }
    return frames
  }
}

/// A producer with sequences.
final class NativeStoryWriter: StoryWriter {
  private let door: DoorWorld
  private let (index, wraps): (Int, Bool)
  private let topic: String
  private let producer: UInt64
  private var connection: StoryConnection
  private var sequence: UInt64 = 0
  private var pending: DoorRecord?

  init(_ door: DoorWorld, at index: Int, wraps: Bool, topic: String, producer: UInt64) {
    self.door = door
    (self.index, self.wraps) = (index, wraps)
    self.topic = topic
    self.producer = producer
    connection = StoryConnection(door, at: index, wraps: wraps)
    open()
  }

  var isIdle: Bool { pending == nil }

  private func open() {
    connection.send(
      PublishOpen(topic: topic, acknowledgement: .received, producer: producer).encoded(stream: 1))
    door.settle()
    for frame in connection.take() where frame.header.type == .publishOpened {
      guard let opened = try? frame.body.withUnsafeBytes({ try PublishOpened(body: $0) }) else { continue }
      if opened.nextSequence > sequence { finish() }
    }
    if let pending { send(pending) }
  }

  private func finish() {
    guard pending != nil else { return }
    pending = nil
    sequence += 1
  }

  func publish(_ record: DoorRecord) {
    pending = record
    send(record)
  }

  private func send(_ record: DoorRecord) {
    connection.send(record.batch.publishFrame(from: sequence, stream: 1))
  }

  func look() {
    for frame in connection.take() where frame.header.type == .ack {
      guard let ack = try? frame.body.withUnsafeBytes({ try Ack(body: $0) }) else { continue }
      if ack.through > sequence { finish() }
    }
  }

  func lose() {
    connection.bytes.abort()
    connection = StoryConnection(door, at: index, wraps: wraps)
    open()
  }
}

/// A subscriber that resumes at its next offset.
final class NativeStoryReader: StoryReader {
  private let door: DoorWorld
  private let (index, wraps): (Int, Bool)
  private let topic: String
  private var connection: StoryConnection
  private(set) var records: [DoorRecord] = []
  /// When each record was appended, in milliseconds since 1970.
  private(set) var times: [Int64] = []
  private var time: Int64 = 0

  init(_ door: DoorWorld, at index: Int, wraps: Bool, topic: String) {
    self.door = door
    (self.index, self.wraps) = (index, wraps)
    self.topic = topic
    connection = StoryConnection(door, at: index, wraps: wraps)
    open()
  }

  private func open() {
    let start: Subscribe.Start = records.isEmpty ? .earliest : .offset(UInt64(records.count))
    connection.send(
      Subscribe(topic: topic, start: start, grantedThrough: Credit.unlimited).encoded(stream: 1))
    door.settle()
  }

  func look() {
    for frame in connection.take() where frame.header.type == .deliver {
      frame.body.withUnsafeBytes { body in
        guard let (header, batch) = try? DeliverHeader.decode(body) else { return }
        #expect(header.firstOffset == UInt64(records.count), "records are missing or come again")
        var iterator = BatchIterator(batch, count: header.count, time: time)
        while let record = try? iterator.next() {
          records.append(DoorRecord(record))
          times.append(record.time)
        }
        time = iterator.time
      }
    }
  }

  func lose() {
    connection.bytes.abort()
    connection = StoryConnection(door, at: index, wraps: wraps)
    (time, _) = (0, open())
  }
}
