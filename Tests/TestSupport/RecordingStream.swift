import Glibc
import SluiceIO

/// A stream that records the bytes written to it, with limits set by the test.
public final class RecordingStream: ByteStream {
  /// How many bytes each write accepts, in turn; the last value repeats. Empty for no limit.
  public var capacities: [Int] = []
  /// The error of the next write.
  public var error: IOError?
  public private(set) var bytes: [UInt8] = []
  public private(set) var writes = 0
  /// The most vectors in one write.
  public private(set) var mostVectors = 0

  public let peer = SocketAddress.unix("recording")
  public var readsPaused = false

  public init() {}

  public func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
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

  public func start(_ handler: any ByteStreamHandler) {}
  /// Bytes from the peer, which reads return.
  public var inbox: [UInt8] = []

  public func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    guard !inbox.isEmpty else { return .wouldBlock }
    let count = min(inbox.count, buffer.count)
    buffer.copyBytes(from: inbox[..<count])
    inbox.removeFirst(count)
    return .bytes(count)
  }

  public func close() {}
  public func abort() {}
}
