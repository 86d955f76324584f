/// Decides when to send PING to a silent peer, and when to close the connection.
///
/// Time is passed in, in nanoseconds of any clock that doesn't go back. A time a little older than the last one, such as that at which a
/// turn of a loop began, counts as no silence. Read what has arrived before checking: a program that was stopped for a while finds its
/// peers' bytes waiting.
public struct Keepalive: Hashable, Sendable {
  public enum Action: Hashable, Sendable {
    /// Nothing before that time.
    case sleep(until: UInt64)
    /// Send a PING, and look again at that time.
    case ping(next: UInt64)
    /// The peer is gone.
    case expired
  }

  private var lastHeard: UInt64
  private let milliseconds: UInt32
  private var pinged = false

  /// - Parameters:
  ///   - milliseconds: the deadline; 0 means never.
  ///   - now: the time, from which the first silence counts.
  public init(milliseconds: UInt32, now: UInt64) {
    self.milliseconds = milliseconds
    lastHeard = now
  }

  /// The silence that is the end, in nanoseconds; nil for never.
  public var deadline: UInt64? { milliseconds == 0 ? nil : UInt64(milliseconds) * 1_000_000 }

  /// Bytes came from the peer, whatever they were.
  public mutating func heard(at now: UInt64) {
    lastHeard = max(lastHeard, now)
    pinged = false
  }

  /// How long nothing was heard, in nanoseconds.
  public func silence(at now: UInt64) -> UInt64 {
    now > lastHeard ? now - lastHeard : 0
  }

  /// The action at `now`: a PING after half the deadline's silence, the end after all of it.
  public mutating func check(at now: UInt64) -> Action {
    guard let deadline else { return .sleep(until: .max) }
    let silence = silence(at: now)
    if silence >= deadline { return .expired }
    if silence < deadline / 2 { return .sleep(until: lastHeard &+ deadline / 2) }
    if pinged { return .sleep(until: lastHeard &+ deadline) }
    pinged = true
    return .ping(next: lastHeard &+ deadline)
  }
}
