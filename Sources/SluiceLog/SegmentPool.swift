import Synchronization

/// Hands out the memory of segments, and keeps the full-size blocks that come back, since touching fresh pages costs more
/// than filling them.
///
/// Shared by all logs of a broker; safe from any thread. Segments return their memory when the last reference to them
/// goes, on whichever thread that is.
public final class SegmentPool: Sendable {
  /// The size, in bytes, of the blocks that are kept for reuse. Other sizes go straight back to the system.
  public let blockBytes: Int

  /// The most bytes of unused blocks kept.
  public let maximumPooledBytes: Int

  /// Runs a job on another thread. Returns false if there is no thread for it.
  public typealias Background = @Sendable (_ job: @escaping @Sendable () -> Void) -> Bool

  /// Prepares blocks ahead of time; nil for a pool that allocates each block on request.
  private let background: Background?
  private let idle = Mutex(IdleBlocks())
  private let inUse = Atomic<Int>(0)
  private let accounted = Atomic<Int>(0)

  /// - Parameters:
  ///   - blockBytes: the logs' full segment size. A multiple of 2 MiB is mapped on huge pages, if available.
  ///   - maximumPooledBytes: the most unused memory to hold on to; 0 keeps none.
  ///   - background: where fresh memory is made ready: a block as soon as a log may need one and none is unused, and the pages of large segments. Their first
  ///     touch takes the system microseconds a page, and up to milliseconds a block, in which the loop that appends would serve no client. Nil for a pool
  ///     whose memory is made ready by its use.
  public init(
    blockBytes: Int = 2 << 20, maximumPooledBytes: Int = 64 << 20, background: Background? = nil
  ) {
    self.blockBytes = blockBytes
    self.maximumPooledBytes = maximumPooledBytes
    self.background = maximumPooledBytes >= blockBytes ? background : nil
  }

  deinit {
    for block in idle.withLock({ $0.takeAll() }) { block.deallocate(bytes: blockBytes) }
  }

  /// Bytes of segments that a log, a slice or a reader holds.
  public var bytesInUse: Int { inUse.load(ordering: .relaxed) }

  /// Bytes of records that are held in other ways, as far as they were put on this account.
  public var bytesAccounted: Int { accounted.load(ordering: .relaxed) }

  /// Bytes of unused blocks that are kept.
  public var bytesPooled: Int { idle.withLock { $0.blocks.count * blockBytes } }

  /// Gives unused blocks back to the system.
  public func releasePooled() {
    for block in idle.withLock({ $0.takeAll() }) { block.deallocate(bytes: blockBytes) }
  }

  /// So many bytes of records more, or less, are held elsewhere.
  func account(_ change: Int) {
    if change != 0 { accounted.wrappingAdd(change, ordering: .relaxed) }
  }

  func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
    inUse.wrappingAdd(bytes, ordering: .relaxed)
    // A log whose segments have grown to half a block needs a whole one next.
    guard bytes >= blockBytes / 2 else { return unsafe SegmentMemory.allocate(bytes) }
    let (block, isShort) = idle.withLock { idle in
      (bytes == blockBytes ? idle.blocks.popLast() : nil, idle.blocks.isEmpty)
    }
    if isShort, let background { prepareNext(by: background) }
    return unsafe block?.address ?? SegmentMemory.allocate(bytes)
  }

  /// Segments from this size on, up to a whole block, have their pages provided while their first records are written.
  static let populatedBytes = 256 << 10

  /// Makes the system provide the pages of a new segment on another thread, ahead of the records. Blocks have theirs when they are handed
  /// out.
  func populate(_ segment: Segment) {
    guard let background, segment.capacity >= Self.populatedBytes, segment.capacity < blockBytes else {
      return
    }
    // The job has the segment, and with it the memory.
    _ = background { unsafe SegmentMemory.populate(segment.memory, bytes: segment.capacity) }
  }

  /// Has one block made ready on another thread, unless one is being made.
  private func prepareNext(by background: Background) {
    guard idle.withLock({ !exchange(&$0.isPreparing, with: true) }) else { return }
    let isBegun = background { [weak self] in self?.prepare() }
    if !isBegun { idle.withLock { $0.isPreparing = false } }
  }

  private func prepare() {
    let block = unsafe Block(address: SegmentMemory.allocate(blockBytes))
    unsafe SegmentMemory.touch(block.address, bytes: blockBytes)
    idle.withLock { $0.isPreparing = false }
    give(block)
  }

  func deallocate(_ address: UnsafeMutableRawPointer, bytes: Int) {
    inUse.wrappingSubtract(bytes, ordering: .relaxed)
    let block = unsafe Block(address: address)
    if bytes == blockBytes { give(block) } else { block.deallocate(bytes: bytes) }
  }

  /// Keeps a block that isn't in use, or gives it back to the system.
  private func give(_ block: Block) {
    let isKept = idle.withLock { idle in
      guard (idle.blocks.count + 1) * blockBytes <= maximumPooledBytes else { return false }
      idle.blocks.append(block)
      return true
    }
    if !isKept { block.deallocate(bytes: blockBytes) }
  }
}

/// Memory that isn't in use.
///
/// Unchecked: the address has exactly one owner at any time, the pool's lock passes it on.
@safe
private struct Block: @unchecked Sendable {
  let address: UnsafeMutableRawPointer

  func deallocate(bytes: Int) { unsafe SegmentMemory.deallocate(address, bytes: bytes) }
}

private struct IdleBlocks {
  // The block that came back last goes out first: it is the likeliest to be in the caches.
  var blocks: [Block] = []
  /// Whether one is being made ready.
  var isPreparing = false

  mutating func takeAll() -> [Block] {
    defer { blocks = [] }
    return blocks
  }
}
