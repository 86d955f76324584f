/// Bytes that have come and aren't used yet, without gaps.
@safe
final class ByteQueue {
  private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var start = 0
  private var end = 0

  deinit {
    unsafe memory.deallocate()
  }

  /// What is there; valid until the next change.
  var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

  /// Lets `body` fill memory behind what is there, and say how much of it. The memory is no larger than twice what has come already, or 64 KiB.
  ///
  /// - Returns: how much was filled.
  func fill(_ body: (UnsafeMutableRawBufferPointer) -> Result<Int, StoreError>) throws(StoreError) -> Int {
    if start > 0, unsafe start == end || end == memory.count {
      unsafe memory.baseAddress!.copyMemory(from: memory.baseAddress! + start, byteCount: end - start)
      end -= start
      start = 0
    }
    if unsafe end == memory.count {
      let larger = unsafe UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * memory.count, alignment: 16)
      unsafe larger.copyMemory(from: bytes)
      unsafe memory.deallocate()
      unsafe memory = unsafe larger
    }
    let count = unsafe min(
      max(try body(UnsafeMutableRawBufferPointer(rebasing: memory[end...])).get(), 0), memory.count - end)
    end += count
    return count
  }

  func remove(_ count: Int) {
    start += min(count, end - start)
  }
}
