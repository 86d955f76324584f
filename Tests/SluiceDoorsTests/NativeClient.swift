import SluiceIO
import SluiceWire
import TestSupport
import Testing

/// A client that speaks the native protocol in frames.
final class NativeClient {
  struct Record {
    var key: String?
    var headers: [String: String] = [:]
    var payload: [UInt8] = []
  }

  private let door: any MQTTStage
  private let bytes: ByteClient
  private var decoder = FrameDecoder(maximumFrame: 1 << 28, openingAt: .client)
  private(set) var frames: [(header: FrameHeader, body: [UInt8])] = []
  private var lastRequest: UInt32 = 1000

  init(
    _ door: any MQTTStage, at index: Int = 0, name: String = "native", credentials: Credentials = .none
  ) throws {
    self.door = door
    bytes = door.connect(index)
    send(
      Hello(maximumFrame: 1 << 24, keepalive: 0, name: name, credentials: credentials), stream: 0)
    settle()
    try #require(frames.first?.header.type == .welcome)
  }

  func send(_ frame: some Frame, stream: UInt32) { bytes.send(frame.encoded(stream: stream)) }

  func settle(_ time: Duration = .milliseconds(100)) {
    door.settle(time)
    _ = try? bytes.take().withUnsafeBytes { chunk in
      try decoder.decode(chunk) { header, body in
        frames.append((header, Array(body)))
        return true
      }
    }
  }

  /// Publishes texts. The first call opens the stream.
  func publish(_ topic: String, _ texts: [String], from sequence: UInt64 = 0, stream: UInt32) {
    if sequence == 0 {
      send(PublishOpen(topic: topic, acknowledgement: .none), stream: stream)
      settle()
    }
    var builder = BatchBuilder()
    for text in texts { Array(text.utf8).withUnsafeBytes { builder.append($0) } }
    send(builder, from: sequence, stream: stream)
  }

  /// Publishes 400 records of 20,000 bytes on stream 1: more than the buffers of a client that reads nothing can take.
  func publishMuch(_ topic: String) {
    let text = String(repeating: "x", count: 20_000)
    for round in 0..<20 {
      publish(topic, [String](repeating: text, count: 20), from: UInt64(round * 20), stream: 1)
    }
  }

  /// Opens a stream for a batch, and publishes it.
  func publish(_ topic: String, _ batch: BatchBuilder, stream: UInt32) {
    send(PublishOpen(topic: topic, acknowledgement: .none), stream: stream)
    settle()
    send(batch, from: 0, stream: stream)
  }

  private func send(_ builder: BatchBuilder, from sequence: UInt64, stream: UInt32) {
    bytes.send(builder.publishFrame(from: sequence, stream: stream))
    settle()
  }

  func show(_ topic: String) -> TopicInfo {
    lastRequest += 1
    send(TopicShow(topic: topic), stream: lastRequest)
    settle()
    let answer = frames.last { $0.header.stream == lastRequest }
    return answer!.body.withUnsafeBytes { try! TopicInfo(body: $0) }
  }

  /// All records that arrived on a stream.
  func records(stream: UInt32) -> [Record] {
    settle()
    var records: [Record] = []
    for frame in frames where frame.header.stream == stream && frame.header.type == .deliver {
      frame.body.withUnsafeBytes { body in
        guard let (header, batch) = try? DeliverHeader.decode(body) else { return }
        var iterator = BatchIterator(batch, count: header.count, time: 0)
        while let record = try? iterator.next() {
          guard record.isAttributed, let attributes = try? RecordAttributes(record.body) else {
            records.append(Record(payload: Array(record.body)))
            continue
          }
          var owned = Record(
            key: attributes.key.map { String(decoding: $0, as: UTF8.self) },
            payload: Array(attributes.payload))
          attributes.forEachHeader {
            owned.headers[String(decoding: $0, as: UTF8.self)] = String(decoding: $1, as: UTF8.self)
          }
          records.append(owned)
        }
      }
    }
    return records
  }
}
