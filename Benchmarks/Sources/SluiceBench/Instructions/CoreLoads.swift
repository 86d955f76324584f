import SluiceLog
import SluiceWire

/// The codec and the log, without a broker around them.
enum CoreLoads {
  static var all: [FixedLoad] { codec + log }

  private static let batch = FixedBatch(size: 128, count: 64)

  // MARK: Codec

  private static var codec: [FixedLoad] {
    [
      FixedLoad(name: "codec: check a batch of 64 records", unit: "record", units: 64_000) {
        {
          for _ in 0..<1_000 {
            try RecordLayout.validate(batch.bytes, count: UInt32(batch.count), maximumRecord: 1 << 20)
          }
        }
      },
      FixedLoad(name: "codec: walk a batch of 64 records", unit: "record", units: 64_000) {
        {
          var sum = 0
          for _ in 0..<1_000 {
            var iterator = BatchIterator(batch.bytes, count: UInt32(batch.count), time: 0)
            while let record = try iterator.next() { sum &+= record.body.count }
          }
          keep(sum)
        }
      },
      FixedLoad(name: "codec: build a batch of 64 records", unit: "record", units: 64_000) {
        var builder = BatchBuilder()
        return {
          for _ in 0..<1_000 {
            builder.removeAll()
            for _ in 0..<batch.count { builder.append(batch.payload) }
            keep(builder.bytes.count)
          }
        }
      },
      FixedLoad(name: "codec: cut frames of one record", unit: "frame", units: 64_000) {
        var decoder = FrameDecoder(maximumFrame: 16 << 20)
        let one = FixedBatch(size: 128, count: 1)
        let bytes = (0..<64).flatMap { one.delivery(offset: UInt64($0)) }
        return {
          var count = 0
          for _ in 0..<1_000 {
            try bytes.withUnsafeBytes { bytes in
              try decoder.decode(bytes) { header, body in
                count &+= body.count
                return true
              }
            }
          }
          keep(count)
        }
      },
    ]
  }

  // MARK: Log

  private static var log: [FixedLoad] {
    [
      FixedLoad(name: "log: append batches of 64 records", unit: "record", units: 256_000) {
        let log = filledLog()
        return { for _ in 0..<4_000 { batch.append(to: log) } }
      }
    ]
      + [1, 100].map { readers in
        let rounds = 2_000 / readers
        return FixedLoad(
          name: "log: append and read at the head, readers: \(readers)", unit: "record",
          units: rounds * batch.count * readers
        ) {
          let log = filledLog()
          var cursors = (0..<readers).map { _ in log.cursor(at: .new).cursor }
          var segment: Segment?
          return {
            for _ in 0..<rounds {
              batch.append(to: log)
              for index in cursors.indices {
                while case .slice(let slice) = log.next(&cursors[index], bytes: 256 << 10, hint: segment) {
                  segment = slice.segment
                }
              }
            }
          }
        }
      }
      + [("a demand of 7 records", UInt64(7)), ("unlimited demand", .max)].map { name, demand in
        FixedLoad(name: "log: replay with \(name)", unit: "record", units: 64_000) {
          let log = TopicLog(retention: .everything, pool: SegmentPool())
          for _ in 0..<1_000 { batch.append(to: log) }
          return {
            var cursor = log.cursor(at: .earliest).cursor
            var segment: Segment?
            while case .slice(let slice) = log.next(&cursor, records: demand, bytes: 256 << 10, hint: segment)
            {
              segment = slice.segment
            }
          }
        }
      }
  }

  /// A log that keeps 1 MiB and has had more, so that each new segment is a reused one.
  private static func filledLog() -> TopicLog {
    let log = TopicLog(retention: Retention(bytes: 1 << 20), pool: SegmentPool())
    for _ in 0..<((4 << 20) / batch.bytes.count) { batch.append(to: log) }
    return log
  }
}
