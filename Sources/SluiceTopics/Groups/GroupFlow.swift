import SluiceIO
import SluiceWire
import Synchronization

/// The position of a group, for flow control, and how long it has limited producers. From any thread.
package final class GroupFlow: Sendable {
  private struct Reported {
    var account: HoldAccount
    /// The part of the topic's holds that has been counted here.
    var counted = HoldLog.Mark()

    mutating func count(_ topic: any GroupTopic, now: MonotonicTime) {
      account.count(topic.holds(since: &counted), to: now)
    }
  }

  private unowned let topic: any GroupTopic
  private let reported: Mutex<Reported>
  /// The first record that isn't settled, in a topic whose producers follow its subscribers.
  private let reportedFloor = Atomic(UInt64.max)

  init(_ topic: any GroupTopic, since now: MonotonicTime) {
    self.topic = topic
    reported = Mutex(Reported(account: HoldAccount(since: now)))
  }

  /// The group's position; nil without members.
  package var position: ReaderPosition? { reported.withLock { $0.account.position } }

  /// The first record that isn't settled; nil if it doesn't affect producers.
  var floor: UInt64? {
    topic.isPaced ? reportedFloor.load(ordering: .relaxed) : nil
  }

  /// Updates the group's position. Returns whether it has changed. With the group's lock held.
  package func report(_ core: Group.Core, now: MonotonicTime) -> Bool {
    guard topic.isPaced else { return false }
    let position = core.position
    reportedFloor.store(core.state.floor, ordering: .relaxed)
    return reported.withLock { reported in
      guard reported.account.position != position else { return false }
      reported.count(topic, now: now)
      reported.account.position = position
      return true
    }
  }

  /// Counts the time for which the group's position has stopped producers.
  package func countHolds(now: MonotonicTime) {
    reported.withLock { $0.count(topic, now: now) }
  }

  /// Adds to a member's description how long the group has limited producers.
  package func show(in info: inout TopicInfo.Subscription, open hold: HoldLog.Hold?, at now: MonotonicTime) {
    let account = reported.withLock { $0.account }
    account.show(in: &info, open: hold, at: now)
  }

  package func isHolding(open hold: HoldLog.Hold?, at now: MonotonicTime) -> Bool {
    reported.withLock { $0.account.isHolding(open: hold, at: now) }
  }
}
