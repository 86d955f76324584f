import SluiceIO
import SluiceWire

/// The interface through which a group uses its topic.
package protocol GroupTopic: AnyObject, Sendable {
  var name: String { get }
  /// Whether it was deleted, or another node serves it.
  var isGone: Bool { get }
  var isPaced: Bool { get }
  var isDurable: Bool { get }
  var memory: MemoryWatch? { get }

  /// The holds of the topic's producers since `mark`, which is advanced.
  func holds(since mark: inout HoldLog.Mark) -> [HoldLog.Hold]
  /// The group has requested more records, or needs less of the log. From any thread.
  func readersMoved()
  /// The group's stored state has changed. From any thread.
  func groupMoved()
  /// Stores the group's present state. Calls `body` on the writer's loop when the state is on disk, or with the reason for a failure; calls it at once if the
  /// topic no longer has the group. From any thread.
  func storeGroup(_ group: Group, _ body: @escaping @Sendable (Fault?) -> Void)
}

/// A member as its group sees it: it can be woken. The group's lock guards both variables.
package protocol GroupParticipant: AnyObject, Sendable {
  /// Its number in the group.
  var number: Int { get set }
  /// The state's count of revocations when the member last compared what it has in hand.
  var seenRevocations: UInt64 { get set }
  /// Makes the member ask the group again, on its own loop. From any thread, without the group's lock.
  func call()
}

/// The loop on which a group handles an event.
package protocol GroupLoop: AnyObject, Sendable {
  var loop: any EventLoop { get }
  /// Whether the broker serves; a broker that stops appends no more records.
  var isServing: Bool { get }
  /// The longest record that a topic accepts, in bytes of its body.
  var longestRecord: Int { get }
  /// Sends dead letters to other nodes of a cluster; nil for a broker of one node, which owns all topics.
  var deadLetterRoute: (any DeadLetterRoute)? { get }

  /// Appends a dead letter to the topic `name`.
  ///
  /// - Parameter stored: called on `loop` when the dead letter is on disk, if the answer is ``GroupDeadLetter/keptLater``.
  func keep(
    _ deadLetter: BatchBuilder, in name: String, durably: Bool, _ stored: @escaping @Sendable (Fault?) -> Void
  ) -> GroupDeadLetter
  /// Reports that the dead-letter topic refuses records.
  func deadLettersWait(of group: String, on topic: String, in name: String, _ error: WireError)
}

/// The result of appending a dead letter.
package enum GroupDeadLetter {
  case kept
  /// Appended; the record is settled when the dead letter is on disk.
  case keptLater
  /// The dead-letter topic refuses it: the topic has ended, can't be created, or doesn't keep every record.
  case refused(WireError)
}
