import Glibc
import SluiceIO

/// What the client has encoded and the transport hasn't taken.
///
/// Counts bytes from the connection's beginning, so that at its end it is known what can have reached the server and what can't.
struct NATSOutput {
  private var bytes: [UInt8] = []
  private var head = 0
  /// Bytes that the transport has taken since the connection's beginning.
  private(set) var written: UInt64 = 0

  /// Up to this capacity, the memory is used again.
  private static let keptCapacity = 4 << 20

  /// Bytes that wait for the transport.
  var count: Int { bytes.count - head }

  /// Bytes that were encoded since the connection's beginning.
  var encoded: UInt64 { written + UInt64(count) }

  mutating func append(_ body: (inout [UInt8]) -> Void) {
    // Half of the memory at least is free then, so that each byte is moved once on average.
    if head > Self.keptCapacity, head > bytes.count / 2 {
      bytes.removeFirst(head)
      head = 0
    }
    body(&bytes)
  }

  /// Takes back what was encoded since `encoded` had this value. Nothing of it may have been written.
  mutating func rewind(to mark: UInt64) {
    precondition(mark >= written && mark <= encoded, "what was written can't be taken back")
    bytes.removeLast(Int(encoded - mark))
  }

  /// Writes as much as the transport takes. Returns why the transport has failed, if so.
  mutating func write(to stream: any ByteStream) -> IOError? {
    guard count > 0 else { return nil }
    let head = head
    let result = unsafe bytes.withUnsafeMutableBytes { bytes in
      var vector = unsafe iovec(iov_base: bytes.baseAddress! + head, iov_len: bytes.count - head)
      return unsafe withUnsafePointer(to: &vector) {
        unsafe stream.write(UnsafeBufferPointer(start: $0, count: 1))
      }
    }
    switch result {
    case .failed(let error): return error
    case .wrote(let count): took(count)
    }
    return nil
  }

  /// The transport has taken the next `count` bytes.
  mutating func took(_ count: Int) {
    head += count
    written += UInt64(count)
    if head == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      head = 0
    }
  }

  /// What waits, for tests without a transport.
  var waiting: ArraySlice<UInt8> { bytes[head...] }
}
