import SluiceWire
import Synchronization
import Testing

@testable import SluiceLog

@Suite struct MemoryTests {
  let pool = SegmentPool(blockBytes: 1 << 16, maximumPooledBytes: 3 << 16)

  @Test func aLogTakesMemoryWithItsFirstRecordAndBeginsSmall() {
    let log = TopicLog(retention: .everything, pool: pool)
    #expect(pool.bytesInUse == 0)
    log.append(sizes: [1])
    #expect(pool.bytesInUse == 16 << 10)
    #expect(log.statistics().memoryBytes == 16 << 10)
  }

  @Test func segmentsDoubleUpToTheirFullSize() {
    let log = TopicLog(retention: .everything, pool: pool)
    for _ in 0..<300 { log.append(sizes: [1000]) }
    // 300 items of 1,004 bytes: 16, 32, 64, 64, ... KiB.
    #expect(log.statistics().memoryBytes == (16 + 32 + 64 * 4) << 10)
    #expect(pool.bytesInUse == log.statistics().memoryBytes)
  }

  @Test func aLargeFirstBatchIsNotSplitIntoSmallSegments() throws {
    let log = TopicLog(retention: .everything, pool: pool)
    log.append(sizes: [Int](repeating: 1000, count: 50))
    var cursor = log.cursor(at: .earliest).cursor
    #expect(try #require(log.next(&cursor, bytes: .max).slice).count == 50)
  }

  @Test func memoryComesBackWithTheLog() {
    do {
      let log = TopicLog(retention: .everything, pool: pool)
      for _ in 0..<1000 { log.append(sizes: [1000]) }
      #expect(pool.bytesInUse > 1_000_000)
    }
    #expect(pool.bytesInUse == 0)
    #expect(pool.bytesPooled == pool.maximumPooledBytes)
    pool.releasePooled()
    #expect(pool.bytesPooled == 0)
  }

  @Test func memoryInUseIsBoundedByRetentionGraceAndASegment() {
    let log = TopicLog(retention: Retention(bytes: 100_000), graceBytes: 50_000, pool: pool)
    for _ in 0..<3000 {
      log.append(sizes: [1000])
      #expect(log.statistics().memoryBytes <= 100_000 + 3 * (1 << 16))
    }
    #expect(pool.bytesInUse == log.statistics().memoryBytes)
    #expect(log.statistics().bytes == 99 * 1004)
  }

  @Test func aSliceKeepsItsSegmentAndOnlyThat() throws {
    let log = TopicLog(retention: .none, graceBytes: 0, pool: pool)
    log.append([TestRecord(body: [1, 2, 3])], at: 9)
    var reader = TestReader(cursor: log.cursor(at: .offset(0), from: 0).cursor)
    var held = log.next(&reader.cursor, bytes: .max).slice
    for _ in 0..<1000 { log.append(sizes: [1000]) }
    #expect(try #require(held).segment.isRetired)
    log.removeAll()
    #expect(pool.bytesInUse == 16 << 10)
    // The memory of the others has been handed out again in the meantime; this one's hasn't.
    let other = TopicLog(retention: .everything, pool: pool)
    for _ in 0..<300 { other.append(sizes: [1000]) }
    #expect(try reader.decode(#require(held)).map(\.1) == [TestRecord(body: [1, 2, 3], time: 9)])
    other.removeAll()
    reader.hint = nil
    held = nil
    #expect(pool.bytesInUse == 0)
  }

  @Test func cursorsKeepNothing() {
    let log = TopicLog(retention: .everything, pool: pool)
    log.append(sizes: [1, 2, 3])
    let cursors = [.earliest, .new, .offset(1)].map { log.cursor(at: $0).cursor }
    log.removeAll()
    #expect(pool.bytesInUse == 0)
    #expect(cursors.map(\.nextOffset) == [0, 3, 1])
  }

  @Test func trimmingWithoutGraceGivesUpATopicThatRests() throws {
    let log = TopicLog(retention: Retention(ageMilliseconds: 100), pool: pool)
    log.append(sizes: [1, 2, 3], at: 0)
    log.trim(now: 101)
    // The grace is for readers under way.
    #expect(log.statistics().bytes == 0)
    #expect(log.statistics().memoryBytes == 16 << 10)
    log.trim(now: 101, graceBytes: 0)
    #expect(log.statistics().memoryBytes == 0)
    #expect(pool.bytesInUse == 0)
    // Small again.
    log.append(sizes: [4], at: 102)
    #expect(pool.bytesInUse == 16 << 10)
    #expect(try log.offsets(from: .earliest) == [3])
  }

  @Test func blocksAreReusedUpToTheCap() {
    let addresses = (0..<5).map { _ in pool.allocate(pool.blockBytes) }
    #expect(pool.bytesInUse == 5 * pool.blockBytes)
    for address in addresses { pool.deallocate(address, bytes: pool.blockBytes) }
    #expect(pool.bytesInUse == 0)
    #expect(pool.bytesPooled == 3 * pool.blockBytes)
    let again = pool.allocate(pool.blockBytes)
    #expect(again == addresses[2])
    #expect(pool.bytesPooled == 2 * pool.blockBytes)
    pool.deallocate(again, bytes: pool.blockBytes)
  }

  @Test func aBlockIsMadeReadyBeforeALogNeedsIt() {
    let jobs = Jobs()
    let pool = SegmentPool(blockBytes: 1 << 16, maximumPooledBytes: 3 << 16) { jobs.add($0) }
    let log = TopicLog(retention: .everything, pool: pool)
    // 16 KiB is far from a whole block, 32 KiB isn't.
    log.append(sizes: [1000])
    #expect(jobs.count == 0)
    for _ in 0..<20 { log.append(sizes: [1000]) }
    #expect(jobs.count == 1)
    // One at a time, however many blocks are taken meanwhile.
    for _ in 0..<200 { log.append(sizes: [1000]) }
    #expect(jobs.count == 1)
    #expect(pool.bytesPooled == 0)
    jobs.runAll()
    #expect(pool.bytesPooled == pool.blockBytes)
    let inUse = pool.bytesInUse
    for _ in 0..<64 { log.append(sizes: [1000]) }
    #expect(pool.bytesInUse == inUse + pool.blockBytes)
    #expect(pool.bytesPooled == 0)
    #expect(jobs.count == 1)
    // A block that came back is as good.
    jobs.runAll()
    let block = pool.allocate(pool.blockBytes)
    jobs.runAll()
    pool.deallocate(block, bytes: pool.blockBytes)
    #expect(pool.bytesPooled == 2 * pool.blockBytes)
    pool.deallocate(pool.allocate(pool.blockBytes), bytes: pool.blockBytes)
    #expect(jobs.count == 0)
  }

  @Test func theMemoryOfALargeSegmentIsMadeReadyWhileItIsWritten() throws {
    let jobs = Jobs()
    let pool = SegmentPool(blockBytes: 1 << 20, maximumPooledBytes: 1 << 20) { jobs.add($0) }
    var log: TopicLog? = TopicLog(retention: .everything, pool: pool)
    // 16, 32, 64, 128 KiB.
    for _ in 0..<200 { log?.append(sizes: [1000]) }
    #expect(jobs.count == 0)
    for _ in 0..<200 { log?.append(sizes: [1000]) }
    #expect(jobs.count == 1)
    let before = try log?.readAll(from: .earliest).map(\.1)
    jobs.runAll()
    #expect(try log?.readAll(from: .earliest).map(\.1) == before)
    #expect(before?.count == 400)
    // It stays as long as that takes.
    for _ in 0..<200 { log?.append(sizes: [1000]) }
    log = nil
    #expect(jobs.count == 2)
    #expect(pool.bytesInUse == 512 << 10)
    jobs.runAll()
    #expect(pool.bytesInUse == 0)
  }

  @Test func aBlockIsMadeWhenItIsNeededWhereNothingElseCanMakeIt() {
    let asked = Jobs()
    let pool = SegmentPool(blockBytes: 1 << 16, maximumPooledBytes: 1 << 16) { job in
      asked.add(job)
      return false
    }
    let blocks = (0..<3).map { _ in pool.allocate(pool.blockBytes) }
    #expect(asked.count == 3)
    for block in blocks { pool.deallocate(block, bytes: pool.blockBytes) }
    // A pool that keeps nothing has nothing made ready.
    let bare = SegmentPool(blockBytes: 1 << 16, maximumPooledBytes: 0) { asked.add($0) }
    bare.deallocate(bare.allocate(bare.blockBytes), bytes: bare.blockBytes)
    #expect(asked.count == 3)
  }

  @Test func aJobDoesNotKeepItsPool() {
    let jobs = Jobs()
    var pool: SegmentPool? = SegmentPool(blockBytes: 1 << 16, maximumPooledBytes: 1 << 16) { jobs.add($0) }
    if let pool { pool.deallocate(pool.allocate(pool.blockBytes), bytes: pool.blockBytes) }
    weak let former = pool
    pool = nil
    #expect(jobs.count == 1)
    #expect(former == nil)
    jobs.runAll()
  }

  @Test func hugePagesAreAlignedAndWritableToTheirEnds() {
    let bytes = 2 * SegmentMemory.hugePageBytes
    let addresses = (0..<4).map { _ in SegmentMemory.allocate(bytes) }
    for (number, address) in addresses.enumerated() {
      #expect(Int(bitPattern: address) % SegmentMemory.hugePageBytes == 0)
      for end in [0, bytes - 1] { address.storeBytes(of: UInt8(number), toByteOffset: end, as: UInt8.self) }
    }
    for (number, address) in addresses.enumerated() {
      for end in [0, bytes - 1] {
        #expect(address.load(fromByteOffset: end, as: UInt8.self) == UInt8(number))
      }
      SegmentMemory.deallocate(address, bytes: bytes)
    }
  }
}

/// Jobs for another thread, which the test runs.
private final class Jobs: Sendable {
  private let jobs = Mutex<[@Sendable () -> Void]>([])

  var count: Int { jobs.withLock { $0.count } }

  @discardableResult
  func add(_ job: @escaping @Sendable () -> Void) -> Bool {
    jobs.withLock { $0.append(job) }
    return true
  }

  func runAll() {
    for job in jobs.withLock({ exchange(&$0, with: []) }) { job() }
  }
}
