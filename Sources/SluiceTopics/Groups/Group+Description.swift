import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

extension Group {
  func info(in bounds: ConsumerBounds, now: MonotonicTime) -> CursorInfo {
    core.withLock { core in
      let counts = core.state.counts
      return CursorInfo(
        name: name, kind: .group, epoch: epoch.number,
        nextOffset: bounds.next(core.state.floor, in: epoch.number, isUsed: core.members > 0),
        end: bounds.head,
        members: UInt32(clamping: core.members), outstanding: UInt64(core.state.outstanding),
        idle: core.idleSince.map { (now - $0).clampedMilliseconds } ?? 0,
        redeliveries: counts.redeliveries, deadLetters: counts.deadLetters, abandoned: counts.dropped,
        missed: counts.lost, delayed: UInt64(core.state.delayed), nextRetry: core.state.nextRetry(now))
    }
  }

  /// The group and its lag, without the bytes and the age of its backlog.
  func consumer(in bounds: ConsumerBounds, now: MonotonicTime) -> TopicInfo.Consumer {
    core.withLock { core in
      let (next, counts) = (
        bounds.next(core.state.floor, in: epoch.number, isUsed: core.members > 0), core.state.counts
      )
      return TopicInfo.Consumer(
        name: name, kind: .group, nextOffset: next,
        lag: bounds.lag(from: next),
        members: UInt32(clamping: core.members), unacknowledged: UInt64(core.state.outstanding),
        redeliveries: counts.redeliveries, deadLetters: counts.deadLetters, abandoned: counts.dropped,
        missed: counts.lost, idle: core.idleSince.map { max((now - $0).clampedMilliseconds, 1) } ?? 0,
        delayed: UInt64(core.state.delayed), nextRetry: core.state.nextRetry(now))
    }
  }

  /// Whether the group has had no member for at least `time`; if so, it accepts no more members.
  func isIdle(for time: Duration, now: MonotonicTime) -> Bool {
    core.withLock { core in
      guard let idleSince = core.idleSince, idleSince + time <= now else { return false }
      core.close(
        Fault(code: .cursorDeleted, message: "group \(name) was forgotten; join it again to make it anew"))
      return true
    }
  }
}

extension GroupState {
  /// Milliseconds until the next delayed retry, at least 1; 0 without any.
  fileprivate func nextRetry(_ now: MonotonicTime) -> UInt64 {
    nextRetry.map { max(($0 - now).clampedMilliseconds, 1) } ?? 0
  }
}
