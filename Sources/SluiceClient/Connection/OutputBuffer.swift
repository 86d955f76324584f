import Glibc
import SluiceIO
import SluiceWire

/// Encoded frames that wait for the transport.
struct OutputBuffer {
  private(set) var bytes: [UInt8] = []
  private var head = 0

  /// Memory up to this is kept for the next turn.
  private static let keptCapacity = 1 << 20

  var count: Int { bytes.count - head }

  mutating func append(_ frame: some Frame, stream: UInt32) {
    frame.encode(stream: stream, into: &bytes)
  }

  /// Lets `body` append encoded frames.
  mutating func append<Result>(_ body: (inout [UInt8]) -> Result) -> Result {
    body(&bytes)
  }

  /// Writes as much as the transport takes. Returns why nothing can be written any more, if so.
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
    case .wrote(let written): self.head += written
    }
    if self.head == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      self.head = 0
    }
    return nil
  }

  mutating func removeAll() {
    bytes = []
    head = 0
  }
}
