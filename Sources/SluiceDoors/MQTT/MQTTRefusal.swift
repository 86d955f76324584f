import SluiceIO
import SluiceMQTT

/// A client that the broker has refused before its CONNECT came, because there are too many connections. It is told so in CONNACK, which takes the version
/// that CONNECT names.
///
/// The broker's connection has ended. So the client has no more than the time for CONNECT, and of all loops together at most ``limit`` wait: beyond that the one that has
/// waited longest on the loop is closed, which is likely to be one that never says anything.
///
/// On its loop only.
final class MQTTRefusal {
  /// Fewer than the connections that the broker lets wait for their end, ``BrokerLimits/closingConnections``, so that those of other clients aren't aborted for them.
  static let limit = 64
  /// Bytes that are read at a time.
  private static let chunk = 4096

  private unowned let handle: MQTTHandle
  private var session: MQTTSession
  private let error: MQTTError
  private var output: [UInt8] = []
  private var timer: TimerToken?
  private var isAnswered = false
  private var hasEnded = false

  /// - Parameters:
  ///   - session: as far as the client has come.
  ///   - error: what it is told.
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
      // Also of what isn't CONNECT, or can't be read: the session has answered that.
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

  /// Closes the client's stream: CONNACK, if it was written, is still sent.
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
