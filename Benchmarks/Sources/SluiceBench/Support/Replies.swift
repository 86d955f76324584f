/// Small frames on their way to the server, in order.
struct Replies {
  private(set) var bytes: [UInt8] = []

  var isEmpty: Bool { bytes.isEmpty }

  mutating func append(_ more: [UInt8]) {
    bytes += more
  }

  mutating func append(_ more: BytePattern) {
    bytes += UnsafeRawBufferPointer(start: more.bytes, count: more.count)
  }

  /// The first `count` bytes were sent.
  mutating func drop(_ count: Int) {
    if count == bytes.count {
      bytes.removeAll(keepingCapacity: true)
    } else {
      bytes.removeFirst(count)
    }
  }
}
