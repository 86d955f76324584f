import SluiceWire

/// What the wire costs where no socket is: building, checking, cutting and walking batches.
enum CodecBench {
  /// Bytes of a batch, about.
  static let batchBytes = 64 << 10

  static func cases() -> [MicroCase] {
    [16, 128, 1024].flatMap { size in
      let batch = EncodedBatch(size: size)
      let table = "codec, \(batch.count) records of \(Format.bytes(Double(size))) a frame"
      return [
        MicroCase(table, "validate") { seconds in
          batch.readings(
            try Stopwatch.nanoseconds(for: seconds) {
              try RecordLayout.validate(batch.bytes, count: UInt32(batch.count), maximumRecord: 1 << 20)
            })
        },
        MicroCase(table, "BatchBuilder") { seconds in
          var builder = BatchBuilder()
          return batch.readings(
            Stopwatch.nanoseconds(for: seconds) {
              builder.removeAll()
              for _ in 0..<batch.count { builder.append(batch.payload) }
              keep(builder.bytes.count)
            })
        },
        MicroCase(table, "BatchIterator") { seconds in
          batch.readings(
            try Stopwatch.nanoseconds(for: seconds) {
              var iterator = BatchIterator(batch.bytes, count: UInt32(batch.count), time: 0)
              var sum = 0
              while let record = try iterator.next() { sum &+= record.body.count }
              keep(sum)
            })
        },
        MicroCase(table, "DELIVER header, written and read") { seconds in
          let place = UnsafeMutableRawBufferPointer.allocate(byteCount: 24, alignment: 8)
          defer { place.deallocate() }
          var offset: UInt64 = 0
          return [
            Reading(
              .perFrame,
              try Stopwatch.nanoseconds(for: seconds) {
                offset &+= 1
                DeliverHeader(firstOffset: offset, count: UInt32(batch.count))
                  .write(at: place.baseAddress!, stream: 7, batchLength: batch.bytes.count)
                let header = FrameHeader(at: place.baseAddress!)
                let body = UnsafeRawBufferPointer(rebasing: place[FrameHeader.size...])
                keep(Int(try DeliverHeader.decode(body).header.firstOffset) &+ Int(header.stream))
              })
          ]
        },
        MicroCase(table, "FrameDecoder, whole frames") { seconds in
          batch.readings(try decode(FrameStream(batch, frames: 4), chunk: .max, seconds))
        },
        MicroCase(table, "FrameDecoder, in pieces of 16 KiB") { seconds in
          batch.readings(try decode(FrameStream(batch, frames: 4), chunk: 16 << 10, seconds))
        },
        MicroCase(table, "FrameDecoder, frames of one record") { seconds in
          let one = EncodedBatch(size: size, count: 1)
          return one.readings(
            try decode(FrameStream(one, frames: batch.count), chunk: .max, seconds))
        },
      ]
    }
  }

  /// Nanoseconds a frame.
  private static func decode(_ stream: FrameStream, chunk: Int, _ seconds: Double) throws -> Double {
    var decoder = FrameDecoder(maximumFrame: 16 << 20)
    let bytes = UnsafeRawBufferPointer(start: stream.bytes.bytes, count: stream.bytes.count)
    let time = try Stopwatch.nanoseconds(for: seconds) {
      var frames = 0
      var position = 0
      while position < bytes.count {
        let end = min(bytes.count, position + min(chunk, bytes.count))
        try decoder.decode(UnsafeRawBufferPointer(rebasing: bytes[position..<end])) { header, body in
          frames &+= body.count > 0 ? 1 : 0
          return true
        }
        position = end
      }
      keep(frames)
    }
    return time / Double(stream.frames)
  }
}

/// A batch of equal records.
private struct EncodedBatch {
  let count: Int
  let bytes: UnsafeRawBufferPointer
  /// The payload of any of them.
  let payload: UnsafeRawBufferPointer

  init(size: Int, count: Int? = nil) {
    let count = count ?? CodecBench.batchBytes / (RecordLayout.wordSize + size)
    self.count = count
    var builder = BatchBuilder()
    [UInt8](repeating: 0x61, count: size).withUnsafeBytes { payload in
      for _ in 0..<count { builder.append(payload) }
    }
    let pattern = BytePattern(builder.bytes)
    let bytes = UnsafeRawBufferPointer(start: pattern.bytes, count: pattern.count)
    self.bytes = bytes
    payload = UnsafeRawBufferPointer(rebasing: bytes[RecordLayout.wordSize..<(RecordLayout.wordSize + size)])
  }

  /// - Parameter time: nanoseconds for all of the batch.
  func readings(_ time: Double) -> [Reading] {
    [
      Reading(.perRecord, time / Double(count)), Reading(.perFrame, time),
      Reading(.gigabytes, Double(bytes.count) / time),
    ]
  }
}

/// Some DELIVER frames behind each other.
private struct FrameStream {
  let frames: Int
  let bytes: BytePattern

  init(_ batch: EncodedBatch, frames: Int) {
    self.frames = frames
    var bytes: [UInt8] = []
    for index in 0..<frames {
      var front = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size)
      front.withUnsafeMutableBytes {
        DeliverHeader(firstOffset: UInt64(index * batch.count), count: UInt32(batch.count))
          .write(at: $0.baseAddress!, stream: 1, batchLength: batch.bytes.count)
      }
      bytes += front
      bytes += batch.bytes
    }
    self.bytes = BytePattern(bytes)
  }
}

extension Column {
  static let perRecord = Column("ns/record")
  static let perFrame = Column("ns/frame")
  static let gigabytes = Column("GB/s")
}
