import SluiceWire

/// The cost of the wire format without sockets: building, checking, decoding and iterating batches.
enum CodecBench {
  /// The approximate number of bytes of a batch.
  static let batchBytes = 64 << 10

  static func cases() -> [MicroCase] {
    [16, 128, 1024].flatMap { size in
      let batch = FixedBatch(size: size, count: batchBytes / (RecordLayout.wordSize + size))
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
          batch.readings(try decode(batch, frames: 4, chunk: .max, seconds))
        },
        MicroCase(table, "FrameDecoder, in pieces of 16 KiB") { seconds in
          batch.readings(try decode(batch, frames: 4, chunk: 16 << 10, seconds))
        },
        MicroCase(table, "FrameDecoder, frames of one record") { seconds in
          let one = FixedBatch(size: size, count: 1)
          return one.readings(try decode(one, frames: batch.count, chunk: .max, seconds))
        },
      ]
    }
  }

  /// Nanoseconds per frame in a sequence of that many DELIVER frames.
  private static func decode(
    _ batch: FixedBatch, frames count: Int, chunk: Int, _ seconds: Double
  ) throws -> Double {
    var decoder = FrameDecoder(maximumFrame: 16 << 20)
    let stream = BytePattern((0..<count).flatMap { batch.delivery(offset: UInt64($0 * batch.count)) })
    let bytes = UnsafeRawBufferPointer(start: stream.bytes, count: stream.count)
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
    return time / Double(count)
  }
}

extension FixedBatch {
  /// - Parameter time: nanoseconds for the whole batch.
  fileprivate func readings(_ time: Double) -> [Reading] {
    [
      Reading(.perRecord, time / Double(count)), Reading(.perFrame, time),
      Reading(.gigabytes, Double(bytes.count) / time),
    ]
  }
}

extension Column {
  static let perRecord = Column("ns/record")
  static let perFrame = Column("ns/frame")
  static let gigabytes = Column("GB/s")
}
