import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// A group as it is kept beyond the process.
extension Group {
  /// What must be kept of it. From any thread; takes time by what is under way.
  var stored: StoredGroup {
    let snapshot = core.withLock { $0.state.snapshot }
    return StoredGroup(epoch: epoch.number, seed: seed, settings: settings, state: snapshot)
  }

  /// A group that goes on where it was, without members. What it knew of records that the log hasn't any more behind its end is forgotten.
  ///
  /// - Parameter limit: the most records that may be under way at a time.
  convenience init(
    name: String, restoring stored: StoredGroup, topic: Topic, epoch: TopicEpoch, limit: Int,
    now: MonotonicTime
  ) {
    var snapshot = stored.state
    snapshot.cut(at: epoch.log.head)
    self.init(
      name: name, settings: stored.settings, seed: stored.seed, topic: topic, epoch: epoch,
      state: GroupState(stored.settings.rules, restoring: snapshot, limit: limit), now: now)
  }
}
