import SluiceIO
import SluiceWire

/// The last few periods in which a topic's producers were stopped, and the time per reason.
///
/// A hold begins when a producer has used up its grants and gets no more, and ends when the topic may grant again. Changed once per such event; an
/// ``HoldAccount`` reads it to find the holds that its subscription has caused.
package struct HoldLog: Sendable {
  /// The reason why producers are stopped.
  package struct Cause: Hashable, Sendable {
    package var reason: TopicInfo.Publication.WaitReason
    /// The subscriptions and groups that cause it, if any.
    var binding: FlowBinding?
  }

  package struct Hold: Sendable {
    package var cause: Cause
    package var start: MonotonicTime
    /// Nil while it lasts.
    package var end: MonotonicTime?
  }

  /// A position in the log up to which it was read.
  package struct Mark: Hashable, Sendable {
    /// The number of holds that had begun.
    package var count: UInt64 = 0
    /// Whether the last of them still lasted, so that the rest of it is to be counted.
    package var isOpen = false
  }

  /// Holds that are kept. Subscriptions read the log when they move. Idle ones are notified of each long hold, so they can only miss short holds when many
  /// follow each other.
  package static let kept = 16
  static let long = Duration.milliseconds(100)

  /// In order of time; only the last may be open.
  package private(set) var holds: [Hold] = []
  private var times: [(reason: TopicInfo.Publication.WaitReason, time: HoldTime)] = []
  private var count: UInt64 = 0

  package var mark: Mark { Mark(count: count, isOpen: open != nil) }

  /// The present hold.
  package var open: Hold? { holds.last.flatMap { $0.end == nil ? $0 : nil } }

  /// Begins a hold for `cause`, or only ends the present one when it is nil.
  ///
  /// - Returns: whether a long hold has ended, of which idle subscriptions must be notified.
  package mutating func change(to cause: Cause?, at now: MonotonicTime) -> Bool {
    guard cause != open?.cause else { return false }
    var wasLong = false
    if let open {
      // Loops take the time at the start of their turns, so one may be behind the other.
      let end = max(now, open.start)
      holds[holds.count - 1].end = end
      add(open, to: end)
      wasLong = open.cause.binding != nil && end - open.start >= Self.long
    }
    if let cause {
      if holds.count == Self.kept { holds.removeFirst() }
      holds.append(Hold(cause: cause, start: max(now, holds.last?.end ?? now)))
      count += 1
    }
    return wasLong
  }

  /// The holds that have begun or lasted since the log was read up to `mark`.
  package func holds(since mark: Mark) -> [Hold] {
    let new = count - mark.count + (mark.isOpen ? 1 : 0)
    return Array(holds.suffix(Int(clamping: new)))
  }

  private mutating func add(_ hold: Hold, to end: MonotonicTime) {
    let index = times.firstIndex { $0.reason == hold.cause.reason } ?? times.count
    if index == times.count { times.append((hold.cause.reason, HoldTime())) }
    times[index].time.add(from: hold.start, to: end)
  }

  /// Each reason that stops producers now, or has stopped them in the last five minutes.
  package func shown(at now: MonotonicTime) -> [TopicInfo.Hold] {
    var log = self
    if let open { log.add(open, to: max(now, open.start)) }
    return log.times.compactMap { reason, time in
      let isPresent = open.map { $0.cause.reason == reason } ?? reason.hasPauses
      let hold = TopicInfo.Hold(
        reason: reason, milliseconds: isPresent ? time.milliseconds(at: now) ?? 0 : 0,
        lastMinute: time.lastMinute(at: now), lastFiveMinutes: time.lastFiveMinutes(at: now))
      return hold.milliseconds > 0 || hold.lastFiveMinutes > 0 ? hold : nil
    }
  }
}

extension TopicInfo.Publication.WaitReason {
  /// Whether the reason recurs with each request or commit, so that it still limits producers during a short pause. Every other reason stops limiting
  /// producers as soon as its hold ends.
  fileprivate var hasPauses: Bool {
    switch self {
    case .notConnected, .storageFull, .storageFailed: false
    default: true
    }
  }
}
