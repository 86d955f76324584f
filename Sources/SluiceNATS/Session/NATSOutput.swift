import Glibc
import SluiceIO

/// Encoded output that the transport hasn't accepted yet: copied bytes, and between them inserts, which the transport reads from their own memory.
///
/// ```
///    copied | insert | copied | insert | insert | copied
///      ▲ written up to somewhere here
/// ```
///
/// Counts bytes from the connection's beginning. At its end, the counts show which output may have reached the server.
struct NATSOutput {
  /// Copied bytes, from `head` on.
  private var bytes: [UInt8] = []
  private var head = 0
  /// The number of copied bytes before those in `bytes`.
  private var dropped = 0
  private var inserts = NATSInsertQueue()
  /// Bytes that the transport has accepted since the connection's beginning.
  private(set) var written: UInt64 = 0

  /// The largest capacity that is kept for reuse.
  private static let keptCapacity = 4 << 20

  /// Bytes that wait for the transport.
  var count: Int { bytes.count - head + inserts.count }

  /// Bytes that were encoded since the connection's beginning.
  var encoded: UInt64 { written + UInt64(count) }

  mutating func append(_ body: (inout [UInt8]) -> Void) {
    // At least half of the memory is free then, so that each byte is moved once on average.
    if head > Self.keptCapacity, head > bytes.count / 2 {
      bytes.removeFirst(head)
      dropped += head
      head = 0
    }
    body(&bytes)
  }

  /// Appends bytes that the transport reads from their own memory.
  mutating func append(_ insert: NATSInsert) { inserts.append(insert, behind: dropped + bytes.count) }

  /// Removes the output encoded since `encoded` had this value. None of it may have been written.
  mutating func rewind(to mark: UInt64) {
    precondition(mark >= written && mark <= encoded, "written bytes can't be withdrawn")
    var rest = Int(encoded - mark)
    while rest > 0 {
      let behind = dropped + bytes.count - max(inserts.lastPlace ?? 0, dropped + head)
      if behind > 0 {
        bytes.removeLast(min(rest, behind))
        rest -= min(rest, behind)
      } else {
        rest -= inserts.removeLast(rest)
      }
    }
  }

  /// Writes as much as the transport accepts. Returns the reason if the transport has failed.
  mutating func write(to stream: any ByteStream) -> IOError? {
    guard count > 0 else { return nil }
    let result = unsafe withVectors { vectors in unsafe stream.write(vectors) }
    switch result {
    case .failed(let error): return error
    case .wrote(let count): took(count)
    }
    return nil
  }

  /// Calls `body` with the waiting output, in order.
  private mutating func withVectors<Result>(_ body: (UnsafeBufferPointer<iovec>) -> Result) -> Result {
    let (head, dropped) = (head, dropped)
    return unsafe bytes.withUnsafeMutableBytes { bytes in
      unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2 * inserts.all.count + 1) { vectors in
        var (used, place) = (0, head)
        func addCopied(through end: Int) {
          guard end > place, let base = bytes.baseAddress else { return }
          unsafe vectors.initializeElement(at: used, to: iovec(iov_base: base + place, iov_len: end - place))
          used += 1
          place = end
        }
        for insert in inserts.all {
          addCopied(through: insert.place - dropped)
          unsafe vectors.initializeElement(at: used, to: insert.vector)
          used += 1
        }
        addCopied(through: bytes.count)
        return unsafe body(UnsafeBufferPointer(rebasing: vectors[..<used]))
      }
    }
  }

  /// Called when the transport has accepted the next `count` bytes.
  mutating func took(_ count: Int) {
    written += UInt64(count)
    var rest = count
    while true {
      let copied = min(rest, (inserts.firstPlace.map { $0 - dropped } ?? bytes.count) - head)
      head += copied
      rest -= copied
      guard rest > 0 else { break }
      rest -= inserts.removeFirst(rest)
    }
    if self.count == 0 {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      (head, dropped) = (0, 0)
    }
  }

  /// A copy of the waiting output, for tests without a transport.
  var waiting: [UInt8] {
    var output = self
    return unsafe output.withVectors { vectors in
      unsafe vectors.reduce(into: []) {
        unsafe $0 += UnsafeRawBufferPointer(start: $1.iov_base, count: $1.iov_len)
      }
    }
  }
}
