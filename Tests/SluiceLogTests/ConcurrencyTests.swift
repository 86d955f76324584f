import Foundation
import SluiceLog
import SluiceWire
import Synchronization
import Testing

@Suite struct ConcurrencyTests {
  /// Every reader sees the records of each appender in its order, without a gap, and all see the same.
  @Test func readersOnOtherThreadsSeeTheOneOrder() throws {
    let appenders = 2
    let batches = 600
    let log = TopicLog(retention: .everything, segmentBytes: 1 << 14, pool: SegmentPool(blockBytes: 1 << 14))
    let expected = UInt64(appenders * (0..<batches).reduce(0) { $0 + Self.batchSize($1) })
    let seen = Mutex<[[UInt64]]>([])
    let write = { @Sendable (appender: Int) in
      var sequence: UInt64 = 0
      for batch in 0..<batches {
        let records = (0..<Self.batchSize(batch)).map { _ in
          defer { sequence += 1 }
          return TestRecord(number: UInt64(appender) << 32 | sequence)
        }
        log.append(records, at: Int64(batch))
      }
    }
    let read = { @Sendable (demand: UInt64) in
      var reader = TestReader(cursor: log.cursor(at: .earliest).cursor)
      var numbers: [UInt64] = []
      while numbers.count < expected {
        switch log.next(&reader.cursor, records: demand, bytes: 3000, hint: reader.hint) {
        case .slice(let slice): numbers += (try? reader.decode(slice).map(\.1.number)) ?? []
        case .caughtUp: sched_yield()
        case .lagged: return
        }
      }
      seen.withLock { $0.append(numbers) }
    }
    runOnThreads([
      { write(0) }, { write(1) }, { read(.max) }, { read(1) }, { read(7) }, { read(100) },
    ])
    #expect(log.head == expected)
    let orders = seen.withLock { $0 }
    #expect(orders.count == 4)
    #expect(Set(orders).count == 1)
    for appender in 0..<appenders {
      let sequences = orders[0].filter { $0 >> 32 == appender }.map { $0 & 0xffff_ffff }
      #expect(sequences == Array(0..<UInt64(sequences.count)))
    }
  }

  /// While memory is dropped and used again at once, a slice in hand stays what it was, and lag adds up.
  @Test func readersBehindARacingLogLoseOnlyWhatTheyAreToldOf() {
    let total: UInt64 = 60_000
    let log = TopicLog(
      retention: Retention(records: 50), segmentBytes: 4096, graceBytes: 4096,
      pool: SegmentPool(blockBytes: 4096, maximumPooledBytes: 8192))
    let results = Mutex<[(delivered: UInt64, missed: UInt64, faults: Int)]>([])
    let read = { @Sendable (demand: UInt64) in
      var reader = TestReader(cursor: log.cursor(at: .offset(0)).cursor)
      var delivered: UInt64 = 0
      var missed = reader.cursor.nextOffset
      var faults = 0
      while reader.cursor.nextOffset < total {
        switch log.next(&reader.cursor, records: demand, bytes: 2000, hint: reader.hint) {
        case .slice(let slice):
          // Long enough for the log to progress, most times.
          sched_yield()
          let records = (try? reader.decode(slice)) ?? []
          if records.contains(where: { $0.0 != $0.1.number }) || records.count != slice.count { faults += 1 }
          if log.head < reader.cursor.nextOffset { faults += 1 }
          delivered += UInt64(slice.count)
        case .caughtUp: sched_yield()
        case .lagged(let count): missed += count
        }
      }
      results.withLock { $0.append((delivered, missed, faults)) }
    }
    let write = { @Sendable in
      for first in stride(from: 0, to: total, by: 10) {
        log.append((first..<first + 10).map { TestRecord(number: $0) }, at: Int64(first / 100))
      }
    }
    let trim = { @Sendable in
      while log.head < total {
        log.trim(now: 0)
        _ = log.statistics()
        _ = log.cursor(at: .last(20))
        sched_yield()
      }
    }
    runOnThreads([write, trim, { read(.max) }, { read(3) }])
    let all = results.withLock { $0 }
    #expect(all.count == 2)
    for result in all {
      #expect(result.faults == 0)
      #expect(result.delivered + result.missed == total)
    }
  }

  private static func batchSize(_ batch: Int) -> Int { batch % 13 == 0 ? 200 : batch % 7 + 1 }
}

extension TestRecord {
  /// A record that says its own number.
  fileprivate init(number: UInt64) {
    self.init(body: withUnsafeBytes(of: number.littleEndian) { [UInt8]($0) })
  }

  fileprivate var number: UInt64 {
    body.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}

/// Runs all at the same time, each on a thread of its own, and returns when all have.
private func runOnThreads(_ bodies: [@Sendable () -> Void]) {
  let group = DispatchGroup()
  for body in bodies {
    group.enter()
    Thread.detachNewThread {
      body()
      group.leave()
    }
  }
  group.wait()
}
