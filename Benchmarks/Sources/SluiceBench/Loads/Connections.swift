import CLinux
import Glibc

/// A publisher's socket, its codec, and the part of a batch that the socket hasn't accepted yet.
final class PublisherConnection<Codec: PublisherCodec> {
  let socket: Socket
  var codec: Codec
  var carry: Carry
  /// Records passed to the socket, or waiting for it.
  var sent: UInt64 = 0
  private var pending = UnsafeRawBufferPointer(start: nil, count: 0)

  init(_ opened: Opened<Codec>) {
    socket = opened.socket
    codec = opened.codec
    carry = Carry(opened.leftover)
    socket.makeNonblocking()
  }

  var isBlocked: Bool { pending.count > 0 }

  /// Encodes and sends the next `count` records. Must not be blocked.
  @inline(__always)
  func send(_ count: Int, stamp: UInt64) throws {
    pending = codec.encode(first: sent, count: count, stamp: stamp)
    sent += UInt64(count)
    try flush()
  }

  /// Sends as many pending bytes as the socket accepts.
  func flush() throws {
    while pending.count > 0 {
      let count = Glibc.send(
        socket.descriptor, pending.baseAddress!, pending.count, Int32(MSG_NOSIGNAL))
      guard count > 0 else {
        if errno == EAGAIN || errno == EINTR { return }
        throw BenchError("a publisher's connection was lost: \(errorText())")
      }
      pending = UnsafeRawBufferPointer(rebasing: pending[count...])
    }
  }
}

/// A subscriber's socket, its codec, and the sink for its records.
final class SubscriberConnection<Codec: SubscriberCodec, Sink: CheckingSink> {
  let socket: Socket
  var codec: Codec
  var carry: Carry
  var sink: Sink
  /// Whether this subscriber reads: the load doesn't wait for one that never reads.
  let reads: Bool

  init(_ opened: Opened<Codec>, publishers: Int, reads: Bool) {
    socket = opened.socket
    codec = opened.codec
    carry = Carry(opened.leftover)
    sink = Sink(publishers: publishers)
    self.reads = reads
    socket.makeNonblocking()
  }
}

/// Bytes of an incomplete record, kept between two reads into the buffer that all connections share.
struct Carry {
  private var bytes: [UInt8]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  var count: Int { bytes.count }

  /// Copies the kept bytes to the place at which the next read appends.
  @inline(__always)
  mutating func unload(into place: UnsafeMutableRawPointer) -> Int {
    let count = bytes.count
    guard count > 0 else { return 0 }
    bytes.withUnsafeBytes { place.copyMemory(from: $0.baseAddress!, byteCount: count) }
    bytes.removeAll(keepingCapacity: true)
    return count
  }

  @inline(__always)
  mutating func load(_ rest: UnsafeRawBufferPointer) {
    if rest.count > 0 { bytes.append(contentsOf: rest) }
  }
}
