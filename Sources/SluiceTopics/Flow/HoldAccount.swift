import SluiceIO
import SluiceWire

/// The last reported position of a subscription or a group, and how long it has limited producers.
///
/// A value: the caller counts holds before it changes the position.
package struct HoldAccount: Sendable {
  /// Nil for a subscription that doesn't count at present.
  package var position: ReaderPosition?
  private var time = HoldTime()
  /// How it last limited producers.
  private var limit = TopicInfo.HoldLimit.none
  private var countedTo = MonotonicTime(nanoseconds: 0)

  package init(position: ReaderPosition? = nil, since now: MonotonicTime) {
    self.position = position
    countedTo = now
  }

  /// Counts the time until `now` for which the position has stopped producers.
  package mutating func count(_ holds: [HoldLog.Hold], to now: MonotonicTime) {
    guard !holds.isEmpty else { return }
    for hold in holds {
      let end = hold.end ?? now
      guard end > countedTo, let position, let limit = hold.cause.binding?.limit(of: position) else {
        continue
      }
      time.add(from: max(hold.start, countedTo), to: end)
      self.limit = limit
    }
    countedTo = max(countedTo, now)
  }

  /// Describes the holds. Call ``count(_:to:)`` before.
  ///
  /// While producers are stopped, subscriptions whose limit stops them count as holding them. While producers can publish, so do subscriptions whose last
  /// hold ended within ``HoldTime/longestPause``.
  package func show(in info: inout TopicInfo.Subscription, open hold: HoldLog.Hold?, at now: MonotonicTime) {
    info.lastMinute = time.lastMinute(at: now)
    info.lastFiveMinutes = time.lastFiveMinutes(at: now)
    info.holding = 0
    info.limit = .none
    if let hold {
      guard let position, let limit = hold.cause.binding?.limit(of: position) else { return }
      info.holding = time.milliseconds(at: now) ?? 1
      info.limit = limit
    } else if let milliseconds = time.milliseconds(at: now) {
      info.holding = milliseconds
      info.limit = limit
    }
  }

  /// Whether it holds producers.
  package func isHolding(open hold: HoldLog.Hold?, at now: MonotonicTime) -> Bool {
    guard let hold else { return time.milliseconds(at: now) != nil }
    guard let position else { return false }
    return hold.cause.binding?.limit(of: position) != nil
  }
}
