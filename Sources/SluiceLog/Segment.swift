import Glibc
import Synchronization

/// A run of consecutive records of one topic, in one block of memory, that only ever grows at its end.
///
/// ```
///        0          12                        committed bytes        capacity
/// memory | time mark | records and time marks |  not yet written     |
/// index  (record, position, ...) at about every 4 KiB, at the starts of batches
/// ```
///
/// Bytes before the committed position never change, so they are read without a lock, by any thread, for as long as the
/// reader holds the segment. The memory returns to the pool when the last reference goes.
///
/// Unchecked: `memory` beyond the committed position and `index` beyond `indexCount` are written only under the lock of
/// the log that owns the segment. The release of those two atomics publishes them. Everything else is constant.
@safe
public final class Segment: @unchecked Sendable {
  /// The offset of the first record. No two segments of a log ever have the same.
  public let baseOffset: UInt64

  /// The size of the memory, in bytes.
  let capacity: Int

  let memory: UnsafeMutableRawPointer
  let index: UnsafeMutablePointer<IndexEntry>
  let indexCount = Atomic<Int>(0)

  /// Records in the upper half, bytes in the lower, so that one load gives a consistent pair.
  private let committed = Atomic<UInt64>(0)
  private let retired = Atomic<Bool>(false)
  private let pool: SegmentPool

  init(baseOffset: UInt64, capacity: Int, pool: SegmentPool) {
    self.baseOffset = baseOffset
    self.capacity = capacity
    self.pool = pool
    unsafe memory = unsafe pool.allocate(capacity)
    unsafe index = .allocate(capacity: capacity / IndexEntry.spacing + 1)
  }

  deinit {
    unsafe index.deallocate()
    unsafe pool.deallocate(memory, bytes: capacity)
  }

  /// True once the log has dropped the segment. A holder of a cached segment releases it then; slices already taken stay
  /// valid for as long as they hold it.
  public var isRetired: Bool { retired.load(ordering: .relaxed) }

  func retire() { retired.store(true, ordering: .relaxed) }

  /// The readable part: always up to the end of a record.
  var end: (records: Int, position: Int) {
    let pair = committed.load(ordering: .acquiring)
    return (Int(truncatingIfNeeded: pair >> 32), Int(truncatingIfNeeded: pair & 0xffff_ffff))
  }

  /// Publishes everything written before. Under the log's lock.
  func commit(records: Int, position: Int) {
    committed.store(
      UInt64(truncatingIfNeeded: records) << 32 | UInt64(truncatingIfNeeded: position), ordering: .releasing)
  }
}

/// A segment's memory as the system gives it.
///
/// Fresh memory is paid for page by page at its first touch, which is several times the price of the copy that touches it. Sizes
/// that huge pages divide are therefore mapped so that the kernel can use them: one fault for 512.
enum SegmentMemory {
  static let hugePageBytes = 2 << 20
  private static let pageBytes = 4 << 10

  static func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
    guard isMapped(bytes) else { return .allocate(byteCount: bytes, alignment: 16) }
    // Alignment is had by mapping one page more and giving back what sticks out.
    let mapped = unsafe mmap(
      nil, bytes + hugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapped = unsafe mapped, unsafe mapped != MAP_FAILED else {
      fatalError("out of memory for a segment of \(bytes) bytes")
    }
    let before = -Int(bitPattern: mapped) & (hugePageBytes - 1)
    let aligned = unsafe mapped + before
    if before > 0 { unsafe munmap(mapped, before) }
    if before < hugePageBytes { unsafe munmap(aligned + bytes, hugePageBytes - before) }
    // A kernel without huge pages refuses; small ones do as well.
    _ = unsafe madvise(aligned, bytes, MADV_HUGEPAGE)
    return unsafe aligned
  }

  /// Makes the system provide all whole pages now, while they may be written. A kernel before Linux 5.14 doesn't, and waits for their use.
  static func populate(_ address: UnsafeMutableRawPointer, bytes: Int) {
    let before = -Int(bitPattern: address) & (pageBytes - 1)
    guard bytes - before >= pageBytes else { return }
    _ = unsafe madvise(address + before, (bytes - before) & ~(pageBytes - 1), populateWrite)
  }

  /// `MADV_POPULATE_WRITE`, which the headers of older systems don't have.
  private static let populateWrite: Int32 = 23

  /// Makes the system provide all of the memory now, before its first use.
  static func touch(_ address: UnsafeMutableRawPointer, bytes: Int) {
    for position in stride(from: 0, to: bytes, by: pageBytes) {
      unsafe address.storeBytes(of: 0, toByteOffset: position, as: UInt8.self)
    }
  }

  static func deallocate(_ address: UnsafeMutableRawPointer, bytes: Int) {
    if isMapped(bytes) {
      unsafe munmap(address, bytes)
    } else {
      unsafe address.deallocate()
    }
  }

  private static func isMapped(_ bytes: Int) -> Bool {
    bytes % hugePageBytes == 0
  }
}
