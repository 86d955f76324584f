import SluiceIO

/// The deadlines for a silent server: when to send PING, and when to end the connection.
struct NATSKeepalive {
  enum Step: Equatable {
    case none
    /// Send PING.
    case ping
    /// The server has been silent for this time.
    case expired(Duration)
  }

  private let interval: Duration
  private let timeout: Duration
  private var lastHeard = MonotonicTime(nanoseconds: 0)
  private var pingSent: MonotonicTime?

  /// - Parameters:
  ///   - interval: the silence after which PING is sent.
  ///   - timeout: the time for the answer.
  init(interval: Duration, timeout: Duration) {
    self.interval = interval
    self.timeout = timeout
  }

  /// Called when bytes have arrived, and when the connection begins.
  mutating func heard(at now: MonotonicTime) {
    lastHeard = now
    pingSent = nil
  }

  /// Called when the transport has accepted bytes that had to wait: the server reads, even if its answer is delayed by a slow network.
  mutating func madeProgress(at now: MonotonicTime) {
    if pingSent != nil { pingSent = now }
  }

  var deadline: MonotonicTime { pingSent.map { $0 + timeout } ?? lastHeard + interval }

  mutating func advance(to now: MonotonicTime) -> Step {
    guard deadline <= now else { return .none }
    guard pingSent == nil else { return .expired(now - lastHeard) }
    pingSent = now
    return .ping
  }
}
