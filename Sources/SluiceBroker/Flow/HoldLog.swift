import SluiceIO
import SluiceWire

/// What has stopped a topic's producers: the last few periods, and how long each reason has.
///
/// A hold begins when a producer has used up its grants and gets no more, and ends when the topic may grant again. Changed once per such event; read by
/// those that look which of the holds are theirs, see ``HoldAccount``.
struct HoldLog: Sendable {
  /// What stops producers.
  struct Cause: Hashable, Sendable {
    var reason: TopicInfo.Publication.WaitReason
    /// The subscriptions and groups that do, if any.
    var binding: FlowBinding?
  }

  struct Hold: Sendable {
    var cause: Cause
    var start: MonotonicTime
    /// Nil while it lasts.
    var end: MonotonicTime?
  }

  /// Up to where a log has been read.
  struct Mark: Hashable, Sendable {
    /// Holds that had begun.
    var count: UInt64 = 0
    /// Whether the last of them lasted then, so that there is more of it to count.
    var isOpen = false
  }

  /// Holds that are kept. Those that move read the log when they do. Those that rest are told of each long hold, so what they may miss are short ones,
  /// when many follow on each other.
  static let kept = 16
  static let long = Duration.milliseconds(100)

  /// The last is the newest; only that one may last.
  private(set) var holds: [Hold] = []
  private var times: [(reason: TopicInfo.Publication.WaitReason, time: HoldTime)] = []
  private var count: UInt64 = 0

  var mark: Mark { Mark(count: count, isOpen: open != nil) }

  /// The hold that lasts.
  var open: Hold? { holds.last.flatMap { $0.end == nil ? $0 : nil } }

  /// From now on producers are stopped by `cause`, or by nothing.
  ///
  /// - Returns: whether that ends a long hold, which those that rest have to be told of.
  mutating func change(to cause: Cause?, at now: MonotonicTime) -> Bool {
    guard cause != open?.cause else { return false }
    var wasLong = false
    if let open {
      // Loops take the time at the start of their turns, so one may be behind another.
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

  /// Those that have begun, or may have gone on, since the log was read up to `mark`.
  func holds(since mark: Mark) -> [Hold] {
    let new = count - mark.count + (mark.isOpen ? 1 : 0)
    return Array(holds.suffix(Int(clamping: new)))
  }

  private mutating func add(_ hold: Hold, to end: MonotonicTime) {
    let index = times.firstIndex { $0.reason == hold.cause.reason } ?? times.count
    if index == times.count { times.append((hold.cause.reason, HoldTime())) }
    times[index].time.add(from: hold.start, to: end)
  }

  /// Each reason that stops producers now, or has in the last five minutes.
  func shown(at now: MonotonicTime) -> [TopicInfo.Hold] {
    var log = self
    if let open { log.add(open, to: max(now, open.start)) }
    return log.times.compactMap { reason, time in
      let isPresent = open.map { $0.cause.reason == reason } ?? true
      let hold = TopicInfo.Hold(
        reason: reason, milliseconds: isPresent ? time.milliseconds(at: now) ?? 0 : 0,
        lastMinute: time.lastMinute(at: now), lastFiveMinutes: time.lastFiveMinutes(at: now))
      return hold.milliseconds > 0 || hold.lastFiveMinutes > 0 ? hold : nil
    }
  }
}
