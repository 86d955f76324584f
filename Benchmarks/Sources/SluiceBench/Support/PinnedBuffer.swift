/// A block of raw memory at one address for all its life: what sockets read into and write from.
///
/// Page-aligned and zeroed. Not thread-safe: owned by the one loop that uses it.
final class PinnedBuffer {
  let base: UnsafeMutableRawPointer
  let count: Int

  init(count: Int) {
    self.count = count
    base = .allocate(byteCount: count, alignment: 4096)
    base.initializeMemory(as: UInt8.self, repeating: 0, count: count)
  }

  deinit {
    base.deallocate()
  }
}
