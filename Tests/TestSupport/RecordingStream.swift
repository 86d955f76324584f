import Glibc
import SluiceIO

/// A stream that takes as much as it is told to, and keeps it.
public final class RecordingStream: ByteStream {
  /// How many bytes each write takes, in turn; the last goes on for ever. Empty for everything.
  public var capacities: [Int] = []
  /// What the next write fails with.
  public var error: IOError?
  public private(set) var bytes: [UInt8] = []
  public private(set) var writes = 0
  /// The most vectors that came at once.
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
  /// What comes from the peer.
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
