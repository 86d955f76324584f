import Glibc

/// A ring of memory for copying and reading, as the baseline for the log.
final class CopyRing {
  private let base: UnsafeMutableRawPointer
  private let count: Int
  private var position = 0

  /// - Parameter bytes: a multiple of 512 KiB. The memory is touched at once, and uses huge pages if possible, like a log's segments.
  init(bytes: Int) {
    count = bytes
    base = .allocate(byteCount: bytes, alignment: 2 << 20)
    madvise(base, bytes, MADV_HUGEPAGE)
    base.initializeMemory(as: UInt8.self, repeating: 0x61, count: bytes)
  }

  deinit {
    base.deallocate()
  }

  /// Copies `bytes`, which must fit, after the last copied bytes.
  func copy(_ bytes: UnsafeRawBufferPointer) {
    if count - position < bytes.count { position = 0 }
    (base + position).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
    position += bytes.count
  }

  /// The next bytes of the ring.
  func next(_ bytes: Int) -> UnsafeRawBufferPointer {
    if count - position < bytes { position = 0 }
    defer { position += bytes }
    return UnsafeRawBufferPointer(start: base + position, count: bytes)
  }
}
