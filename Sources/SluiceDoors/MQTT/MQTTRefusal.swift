import SluiceIO
import SluiceMQTT

/// A client that the broker refused before its CONNECT, because there are too many connections. It gets the error in CONNACK, whose format depends on the
/// version in CONNECT.
///
/// The connection to the broker has already ended, so the client has only the time for CONNECT. At most ``limit`` clients wait across all loops; beyond that,
/// the loop closes the client that has waited longest, which probably never sends anything.
///
/// On its loop only.
final class MQTTRefusal {
  /// Less than ``BrokerLimits/closingConnections``, the number of connections that the broker lets wait for their end, so that waiting clients don't cause
  /// other clients' connections to be aborted.
  static let limit = 64
  /// Bytes to read at a time.
  private static let chunk = 4096

  private unowned let handle: MQTTHandle
  private var session: MQTTSession
  private let error: MQTTError
  private var output: [UInt8] = []
  private var timer: TimerToken?
  private var isAnswered = false
  private var hasEnded = false

  /// - Parameters:
  ///   - session: the client's session so far.
  ///   - error: the error in CONNACK.
  init(_ handle: MQTTHandle, _ session: MQTTSession, _ error: MQTTError) {
    self.handle = handle
    self.session = session
    self.error = error
  }

  /// Waits for CONNECT.
  func begin() {
    guard let deadline = session.deadline, handle.shared.add(self) else { return end() }
    timer = handle.loop.schedule(at: MonotonicTime(nanoseconds: deadline)) { [weak self] in
      self?.timer = nil
      self?.end()
    }
  }

  func streamReadable() {
    guard !hasEnded else { return }
    let (transport, now) = (handle.transport, handle.loop.now.nanoseconds)
    unsafe withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 16) { buffer in
      switch unsafe transport.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed: end()
      case .bytes(let count):
        guard !isAnswered else { break }
        unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]), now)
      }
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer, _ now: UInt64) {
    var hasCome = false
    _ = unsafe session.receive(bytes, now: now, output: &output) { action in
      switch action {
      // Also for malformed input and packets other than CONNECT: the session has answered them.
      case .connect, .end: hasCome = true
      default: break
      }
    }
    guard hasCome else { return }
    isAnswered = true
    session.refused(error.reason, error.message, output: &output) { _ in }
    streamWritable()
  }

  func streamWritable() {
    guard isAnswered, !hasEnded else { return }
    guard output.write(to: handle.transport), !output.isEmpty else { return end() }
  }

  /// Closes the client's stream after a CONNACK that was written is sent.
  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    handle.loop.cancel(&timer)
    handle.shared.remove(self)
    let transport = handle.transport
    handle.end()
    transport.close()
  }
}
