import Glibc

/// Memory that is copied into, or read, round and round: what there is to compare a log with.
final class CopyRing {
  private let base: UnsafeMutableRawPointer
  private let count: Int
  private var position = 0

  /// - Parameter bytes: a multiple of 512 KiB. Touched at once, on huge pages where it can be, as a log's segments are.
  init(bytes: Int) {
    count = bytes
    base = .allocate(byteCount: bytes, alignment: 2 << 20)
    madvise(base, bytes, MADV_HUGEPAGE)
    base.initializeMemory(as: UInt8.self, repeating: 0x61, count: bytes)
  }

  deinit {
    base.deallocate()
  }

  /// Copies `bytes`, which must fit, behind what was copied last.
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
