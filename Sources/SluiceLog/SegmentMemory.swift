import Glibc

/// A segment's memory as the system gives it.
///
/// Fresh memory is paid for page by page at its first touch, which is several times the price of the copy that touches it. Sizes
/// that huge pages divide are therefore mapped so that the kernel can use them: one fault for 512.
enum SegmentMemory {
  static let hugePageBytes = 2 << 20

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
