import Glibc
import SluiceIO
import SluiceWire

/// Sends an error to a client that exceeds the limit of connections, and closes.
///
/// This is usually done at once. Over TLS the handshake has to complete first, within the time limit of handshakes; the client's input is ignored.
// @unchecked: belongs to its loop. Retained by its stream until that is closed.
final class RejectedConnection: ByteStreamHandler, @unchecked Sendable {
  private let stream: any ByteStream
  private let loop: any EventLoop
  private var bytes: ArraySlice<UInt8>
  private var timer: TimerToken?

  /// - Parameters:
  ///   - error: the error that the client gets.
  ///   - patience: how long the client may take to read it.
  static func tell(
    _ stream: any ByteStream, _ error: WireError, on loop: any EventLoop, patience: Duration
  ) {
    let client = RejectedConnection(stream, error, on: loop)
    if client.write() { client.wait(patience) }
  }

  private init(_ stream: any ByteStream, _ error: WireError, on loop: any EventLoop) {
    self.stream = stream
    self.loop = loop
    bytes = Fault(error).encoded(stream: 0)[...]
  }

  /// - Returns: whether the rest has to wait.
  private func write() -> Bool {
    let result = unsafe bytes.withUnsafeBytes { bytes in
      var vector = unsafe iovec(
        iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress!), iov_len: bytes.count)
      return unsafe withUnsafePointer(to: &vector) {
        unsafe stream.write(UnsafeBufferPointer(start: $0, count: 1))
      }
    }
    if case .wrote(let count) = result, count < bytes.count {
      bytes = bytes.dropFirst(count)
      return true
    }
    stream.close()
    return false
  }

  private func wait(_ patience: Duration) {
    timer = loop.schedule(after: patience) { [weak self] in self?.stream.abort() }
    stream.readsPaused = true
    stream.start(self)
  }

  func streamReadable() {}

  func streamWritable() {
    if !write(), let timer { loop.cancel(timer) }
  }

  func streamFailed(_ error: IOError) {
    if let timer { loop.cancel(timer) }
  }
}
