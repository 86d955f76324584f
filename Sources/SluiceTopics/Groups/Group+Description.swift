import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

extension Group {
  package func info(now: MonotonicTime) -> CursorInfo {
    let head = epoch.log.head
    return core.withLock { core in
      CursorInfo(
        name: name, kind: .group, epoch: epoch.number, nextOffset: core.state.floor, end: head,
        members: UInt32(clamping: core.members), outstanding: UInt64(core.state.outstanding),
        idle: core.idleSince.map { (now - $0).clampedMilliseconds } ?? 0)
    }
  }

  /// Whether it has had no member for so long; from then on it takes none.
  func isIdle(for time: Duration, now: MonotonicTime) -> Bool {
    core.withLock { core in
      guard let idleSince = core.idleSince, idleSince + time <= now else { return false }
      core.close(
        Fault(code: .cursorDeleted, message: "group \(name) was forgotten; join it again to make it anew"))
      return true
    }
  }
}
