import Glibc

/// Bytes that are compared with received bytes. They are stored outside of arrays, so that a comparison costs neither a bounds check nor a retain. A run
/// creates a few of them and never frees them.
struct BytePattern: @unchecked Sendable {  // immutable after initialisation
  let bytes: UnsafeRawPointer
  let count: Int

  init(_ text: String) {
    self.init(Array(text.utf8))
  }

  init(_ content: [UInt8]) {
    let copy = UnsafeMutableRawPointer.allocate(byteCount: max(content.count, 1), alignment: 8)
    content.withUnsafeBytes {
      copy.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(copy), byteCount: $0.count)
    }
    bytes = UnsafeRawPointer(copy)
    count = content.count
  }

  /// Returns whether the pattern stands at `pointer`, where at least `count` bytes must be readable.
  @inline(__always)
  func matches(_ pointer: UnsafeRawPointer) -> Bool {
    memcmp(pointer, bytes, count) == 0
  }

  /// Returns whether the `available` bytes at `pointer` are a beginning of the pattern.
  func couldMatch(_ pointer: UnsafeRawPointer, available: Int) -> Bool {
    memcmp(pointer, bytes, min(available, count)) == 0
  }
}
