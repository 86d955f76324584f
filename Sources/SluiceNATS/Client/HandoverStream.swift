import Glibc
import SluiceIO

/// A stream whose handler may be replaced once: a connection to a NATS server begins in plain text, and continues with TLS.
///
/// On its loop only.
final class HandoverStream: ByteStream, ByteStreamHandler {
  private let beneath: any ByteStream
  private var handler: (any ByteStreamHandler)?
  private var isStarted = false

  init(_ beneath: any ByteStream) {
    self.beneath = beneath
  }

  var peer: SocketAddress { beneath.peer }
  var security: StreamSecurity? { beneath.security }

  /// Detaches the stream from its handler. Nothing is read until the next handler starts it.
  func release() {
    handler = nil
    beneath.readsPaused = true
  }

  func start(_ handler: any ByteStreamHandler) {
    precondition(self.handler == nil, "a stream has one handler")
    self.handler = handler
    guard isStarted else {
      isStarted = true
      return beneath.start(self)
    }
    beneath.readsPaused = false
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult { unsafe beneath.read(into: buffer) }

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult { unsafe beneath.write(vectors) }

  var readsPaused: Bool {
    get { beneath.readsPaused }
    set { beneath.readsPaused = newValue }
  }

  func close() {
    beneath.close()
    handler = nil
  }

  func abort() {
    beneath.abort()
    handler = nil
  }

  func streamReadable() { handler?.streamReadable() }

  func streamWritable() { handler?.streamWritable() }

  func streamFailed(_ error: IOError) {
    let last = handler
    handler = nil
    last?.streamFailed(error)
  }
}
