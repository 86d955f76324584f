import Glibc
import SluiceIO
import SluiceWire

/// A client that there is no place for: it is told so, and closed.
///
/// Mostly that is done at once. Over TLS it first has to shake hands to be told anything, for which it has the time that handshakes have; what it
/// sends isn't looked at.
// @unchecked: belongs to its loop. Kept by its stream until that is closed.
final class RejectedConnection: ByteStreamHandler, @unchecked Sendable {
  private let stream: any ByteStream
  private let loop: any EventLoop
  private var bytes: ArraySlice<UInt8>
  private var timer: TimerToken?

  /// - Parameters:
  ///   - error: what it is told.
  ///   - patience: how long it may take to take that.
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

  /// - Returns: whether some of it has to wait.
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
