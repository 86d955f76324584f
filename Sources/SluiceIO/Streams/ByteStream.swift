import CLinux
import Glibc

/// A connection's bytes, in both directions, without blocking: a socket, a simulated one, or a layer over either.
///
/// A stream belongs to one loop and is used on it only. Its results are per batch of bytes, so that calling it through the
/// protocol costs nothing per record.
///
/// The end of a connection is reported once: by `end` from a read when the peer is done, by `failed` from a read or a write, or by
/// the handler's `streamFailed`. After a failure the handler has been released.
public protocol ByteStream: AnyObject {
  /// Where the other side is, for messages and logs.
  var peer: SocketAddress { get }

  /// The protection of the bytes and the peer's proved identity, once the first bytes have arrived; nil for a stream
  /// without TLS.
  var security: StreamSecurity? { get }

  /// Whether the other side is a part of this program. Its word about its identity needs no proof.
  var isInternal: Bool { get }

  /// Whether a part of this program is on the other side, for a client or not, which is there as long as the stream is open.
  var isLocal: Bool { get }

  /// Bytes that wait in the stream itself, in either direction. Bytes in the operating system's buffers aren't counted.
  var heldBytes: Int { get }

  /// The reason why written bytes haven't reached the other program, while they wait; nil if the transport doesn't know
  /// it.
  var obstacle: StreamObstacle? { get }

  /// Starts handing out events to `handler`, which the stream keeps until it is closed or fails. Once.
  func start(_ handler: any ByteStreamHandler)

  /// Reads available bytes, at most `buffer.count`.
  ///
  /// After a write failed, what had arrived before can still be read, up to the `close()`.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult

  /// Writes as much of `vectors` as the transport takes now.
  ///
  /// After a write that came short the handler's `streamWritable()` is called once there is room again; writability is
  /// watched only then.
  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult

  /// While true, `streamReadable()` isn't called: back-pressure towards the peer. The end of the stream isn't noticed
  /// meanwhile, but a reset is.
  var readsPaused: Bool { get set }

  /// Closes: what was written is still sent, nothing more is called, the handler is released. Calling it again does nothing.
  ///
  /// Bytes that the peer still sends are discarded for a while, instead of being answered with a reset, which would
  /// discard bytes that the peer has not read yet. A peer that no longer answers at all is better left with `abort()`.
  func close()

  /// Closes at once with a reset; what wasn't sent yet is lost. Over a Unix socket, which knows no resets, the peer may see
  /// an end instead.
  func abort()
}

extension ByteStream {
  public var security: StreamSecurity? { nil }

  public var isInternal: Bool { false }

  public var isLocal: Bool { false }

  public var heldBytes: Int { 0 }

  public var obstacle: StreamObstacle? { nil }

  /// Writes as much of `bytes` as the transport takes now. See `write(_:)` of vectors.
  package func write(_ bytes: UnsafeRawBufferPointer) -> WriteResult {
    var vector = unsafe iovec(
      iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
    return unsafe withUnsafePointer(to: &vector) { unsafe write(UnsafeBufferPointer(start: $0, count: 1)) }
  }
}

/// The reason why bytes haven't reached the program on the other side.
public enum StreamObstacle: Hashable, Sendable {
  /// The program doesn't read: its system has acknowledged all sent bytes, and accepts no more.
  case peer
  /// Its system doesn't acknowledge what was sent.
  case network
}

/// The protection of a stream.
public struct StreamSecurity: Hashable, Sendable {
  /// `TLSv1.3`
  public var version: String
  /// `TLS_AES_256_GCM_SHA384`
  public var cipher: String
  /// The name in the certificate that the peer has proved to be its own, and that a trusted authority has signed; nil without one.
  public var peerName: String?
  /// The name in that certificate, when an authority of nodes has signed it and none of clients: the peer is another node of a cluster. ``peerName`` is
  /// nil then.
  public var nodeName: String?
  /// When that certificate ends, in milliseconds since 1970; nil without one.
  public var peerExpires: Int64?

  public init(
    version: String, cipher: String, peerName: String? = nil, nodeName: String? = nil,
    peerExpires: Int64? = nil
  ) {
    self.version = version
    self.cipher = cipher
    self.peerName = peerName
    self.nodeName = nodeName
    self.peerExpires = peerExpires
  }
}

/// Reads and writes a stream. Called on the stream's loop only.
public protocol ByteStreamHandler: AnyObject {
  /// There are bytes, or the end of the stream: `read(into:)` returns which. Called once per turn as long as there are;
  /// not after the end has been read.
  func streamReadable()

  /// There is room again after a write that came short.
  func streamWritable()

  /// The connection is gone: reset by the peer, or failed. Nothing is called after this. Not called after `close()` or `abort()`,
  /// nor when a read or write has said so. Bytes that arrived before the failure are handed out first, unless reads are paused.
  func streamFailed(_ error: IOError)

  /// ``ByteStream/heldBytes`` has changed by much without any of the other calls. May come from within a call of the stream.
  func streamHoldsOther()
}

extension ByteStreamHandler {
  public func streamHoldsOther() {}
}

/// The result of a read.
public enum ReadResult: Equatable, Sendable {
  /// That many bytes, at least one.
  case bytes(Int)
  /// Nothing now; `streamReadable()` will be called.
  case wouldBlock
  /// The peer sends no more. It may still read.
  case end
  /// The connection is gone.
  case failed(IOError)
}

/// The result of a write.
public enum WriteResult: Equatable, Sendable {
  /// That many bytes were taken, from 0 to all. Fewer than all: `streamWritable()` will be called.
  case wrote(Int)
  /// The connection is gone.
  case failed(IOError)
}
