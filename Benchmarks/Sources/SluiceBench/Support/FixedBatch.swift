import SluiceLog
import SluiceWire

/// A batch of equal records, as a producer sends it.
struct FixedBatch: Sendable {
  let count: Int
  private let pattern: BytePattern
  private let payloadSize: Int

  init(size: Int, count: Int) {
    self.count = count
    payloadSize = size
    var builder = BatchBuilder()
    [UInt8](repeating: 0x61, count: size).withUnsafeBytes { payload in
      for _ in 0..<count { builder.append(payload) }
    }
    pattern = BytePattern(builder.bytes)
  }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: pattern.bytes, count: pattern.count) }

  /// The payload of each record.
  var payload: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: pattern.bytes + RecordLayout.wordSize, count: payloadSize)
  }

  func append(to log: TopicLog) {
    log.append(bytes, count: count, at: 1)
  }

  /// A PUBLISH frame on stream 1.
  func publication(sequence: UInt64) -> [UInt8] {
    frame(front: PublishHeader.size) {
      PublishHeader(firstSequence: sequence, count: UInt32(count)).write(
        at: $0, stream: 1, batchLength: bytes.count)
    }
  }

  /// A DELIVER frame on stream 1.
  func delivery(offset: UInt64) -> [UInt8] {
    frame(front: DeliverHeader.size) {
      DeliverHeader(firstOffset: offset, count: UInt32(count)).write(
        at: $0, stream: 1, batchLength: bytes.count)
    }
  }

  private func frame(front size: Int, _ write: (UnsafeMutableRawPointer) -> Void) -> [UInt8] {
    var front = [UInt8](repeating: 0, count: FrameHeader.size + size)
    front.withUnsafeMutableBytes { write($0.baseAddress!) }
    return front + bytes
  }
}
