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

  private let idle = Mutex(IdleBlocks())
  private let inUse = Atomic<Int>(0)
  private let accounted = Atomic<Int>(0)

  /// - Parameters:
  ///   - blockBytes: the logs' full segment size. A multiple of 2 MiB is mapped on huge pages where there are any.
  ///   - maximumPooledBytes: the most unused memory to hold on to; 0 keeps none.
  public init(blockBytes: Int = 2 << 20, maximumPooledBytes: Int = 64 << 20) {
    self.blockBytes = blockBytes
    self.maximumPooledBytes = maximumPooledBytes
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
    if bytes == blockBytes, let block = idle.withLock({ $0.blocks.popLast() }) { return unsafe block.address }
    return unsafe SegmentMemory.allocate(bytes)
  }

  func deallocate(_ address: UnsafeMutableRawPointer, bytes: Int) {
    inUse.wrappingSubtract(bytes, ordering: .relaxed)
    let block = unsafe Block(address: address)
    let kept =
      bytes == blockBytes
      && idle.withLock { idle in
        guard (idle.blocks.count + 1) * blockBytes <= maximumPooledBytes else { return false }
        idle.blocks.append(block)
        return true
      }
    if !kept { block.deallocate(bytes: bytes) }
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

  mutating func takeAll() -> [Block] {
    defer { blocks = [] }
    return blocks
  }
}
