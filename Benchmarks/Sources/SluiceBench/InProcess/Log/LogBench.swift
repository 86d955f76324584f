import SluiceLog
import SluiceWire

/// The cost of the log without a broker, compared with copying the same bytes.
enum LogBench {
  static let size = 128
  static let batches = [1, 8, 64, 512]

  static func cases() -> [MicroCase] {
    appending() + atTheHead() + reading()
  }

  // MARK: Appending

  /// The bytes that the log retains, and the size of the ring, so that neither fits the caches.
  private static let retainedBytes = 64 << 20

  private static func appending() -> [MicroCase] {
    let table = "log, append, batches of \(size) B records"
    return batches.flatMap { count in
      let batch = FixedBatch(size: size, count: count)
      return [
        MicroCase(table, "append \(count)") { seconds in
          let log = TopicLog(retention: Retention(bytes: UInt64(retainedBytes)), pool: SegmentPool())
          batch.fill(log, bytes: 2 * retainedBytes)
          return batch.readings(Stopwatch.nanoseconds(for: seconds) { batch.append(to: log) })
        },
        MicroCase(table, "memcpy \(count)") { seconds in
          let ring = CopyRing(bytes: retainedBytes)
          for _ in 0..<(2 * retainedBytes / batch.bytes.count) { ring.copy(batch.bytes) }
          return batch.readings(Stopwatch.nanoseconds(for: seconds) { ring.copy(batch.bytes) })
        },
      ]
    }
  }

  // MARK: Reading at the head

  private static func atTheHead() -> [MicroCase] {
    let table = "log, next() at the head, batches of 64"
    return [1, 8, 100].map { readers in
      MicroCase(table, "\(readers) readers") { seconds in
        let batch = FixedBatch(size: size, count: 64)
        let log = TopicLog(retention: Retention(bytes: UInt64(retainedBytes)), pool: SegmentPool())
        batch.fill(log, bytes: 2 * retainedBytes)
        let alone = Stopwatch.nanoseconds(for: seconds) { batch.append(to: log) }
        var cursors = (0..<readers).map { _ in log.cursor(at: .new).cursor }
        var segment: Segment?
        var records = 0
        let together = Stopwatch.nanoseconds(for: seconds) {
          batch.append(to: log)
          for index in cursors.indices {
            // Reads until there are no more slices, as the broker does.
            while case .slice(let slice) = log.next(&cursors[index], bytes: 256 << 10, hint: segment) {
              records &+= slice.count
              segment = slice.segment
            }
          }
        }
        keep(records)
        // Includes the ends of segments, which cost two slices and a lock.
        let each = (together - alone) / Double(readers)
        return [
          Reading(.perSlice, each), Reading(.records, 1e9 * Double(batch.count) / each),
          Reading(Column("append + all, ns"), together),
        ]
      }
    }
  }

  // MARK: Replay

  private static func reading() -> [MicroCase] {
    let table = "log, replay of \(size) B records"
    let batch = FixedBatch(size: size, count: 512)
    let log = TopicLog(retention: .everything, pool: SegmentPool())
    var cases = [("demand 1", UInt64(1)), ("demand 7", 7), ("demand 1000", 1000), ("unlimited", .max)].map {
      name, demand in
      MicroCase(table, name) { seconds in
        if log.head == 0 { batch.fill(log, bytes: retainedBytes) }
        return replay(log, demand, seconds) { _ in }
      }
    }
    cases.append(
      MicroCase(table, "unlimited, copied out") { seconds in
        if log.head == 0 { batch.fill(log, bytes: retainedBytes) }
        let out = CopyRing(bytes: 512 << 10)
        return replay(log, .max, seconds) { out.copy($0.bytes) }
      })
    cases.append(
      MicroCase(table, "memcpy of as much, by 256 KiB") { seconds in
        let source = CopyRing(bytes: retainedBytes)
        let out = CopyRing(bytes: 512 << 10)
        let time = Stopwatch.nanoseconds(for: seconds) { out.copy(source.next(256 << 10)) }
        return [
          Reading(.perSlice, time), Reading(.records, 1e9 / time * Double((256 << 10) / (size + 4))),
          Reading(.gigabytes, Double(256 << 10) / time),
        ]
      })
    return cases
  }

  /// Reads the log repeatedly, at most that many records at a time.
  private static func replay(
    _ log: TopicLog, _ demand: UInt64, _ seconds: Double, _ body: (LogSlice) -> Void
  ) -> [Reading] {
    var cursor = log.cursor(at: .earliest).cursor
    var segment: Segment?
    var records = 0
    var bytes = 0
    var slices = 0
    let time = Stopwatch.nanoseconds(for: seconds) {
      switch log.next(&cursor, records: demand, bytes: 256 << 10, hint: segment) {
      case .slice(let slice):
        segment = slice.segment
        records &+= slice.count
        bytes &+= slice.bytes.count
        slices &+= 1
        body(slice)
      case .caughtUp, .lagged:
        cursor = log.cursor(at: .earliest).cursor
      }
    }
    // Means that include the calibrating rounds, which do the same work.
    let slice = max(Double(slices), 1)
    return [
      Reading(.perSlice, time), Reading(.records, 1e9 / time * Double(records) / slice),
      Reading(.gigabytes, Double(bytes) / slice / time),
    ]
  }
}

extension FixedBatch {
  fileprivate func fill(_ log: TopicLog, bytes total: Int) {
    for _ in 0..<(total / bytes.count + 1) { append(to: log) }
  }

  /// - Parameter time: nanoseconds per batch.
  fileprivate func readings(_ time: Double) -> [Reading] {
    [
      Reading(Column("ns/batch"), time), Reading(.records, 1e9 * Double(count) / time),
      Reading(.gigabytes, Double(bytes.count) / time),
    ]
  }
}

extension Column {
  fileprivate static let perSlice = Column("ns/slice")
  fileprivate static let records = Column("records/s", .count)
}
