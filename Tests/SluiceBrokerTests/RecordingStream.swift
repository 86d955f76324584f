import CLinux
import Glibc
import SluiceIO

/// A stream that takes as much as it is told to, and keeps it.
final class RecordingStream: ByteStream {
  /// How many bytes each write takes, in turn; the last goes on for ever. Empty for everything.
  var capacities: [Int] = []
  /// What the next write fails with.
  var error: IOError?
  private(set) var bytes: [UInt8] = []
  private(set) var writes = 0
  /// The most vectors that came at once.
  private(set) var mostVectors = 0

  let peer = SocketAddress.unix("recording")
  var readsPaused = false

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    writes += 1
    mostVectors = max(mostVectors, vectors.count)
    if let error { return .failed(error) }
    let capacity = capacities.first ?? .max
    if capacities.count > 1 { capacities.removeFirst() }
    var left = capacity
    for vector in vectors {
      let part = UnsafeRawBufferPointer(start: vector.iov_base, count: min(vector.iov_len, left))
      bytes += part
      left -= part.count
    }
    return .wrote(capacity - left)
  }

  func start(_ handler: any ByteStreamHandler) {}
  /// What comes from the peer.
  var inbox: [UInt8] = []

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    guard !inbox.isEmpty else { return .wouldBlock }
    let count = min(inbox.count, buffer.count)
    buffer.copyBytes(from: inbox[..<count])
    inbox.removeFirst(count)
    return .bytes(count)
  }

  func close() {}
  func abort() {}
}
