import SluiceIO
import SluiceWire

/// What a group needs of its topic.
package protocol GroupTopic: AnyObject, Sendable {
  var name: String { get }
  /// Whether it was deleted, or another node serves it.
  var isGone: Bool { get }
  var isPaced: Bool { get }
  var isDurable: Bool { get }
  var memory: MemoryWatch? { get }

  /// The holds of the topic's producers since `mark`, which is moved on.
  func holds(since mark: inout HoldLog.Mark) -> [HoldLog.Hold]
  /// The group asks for more, or needs less of the log. From any thread.
  func readersMoved()
  /// The group's stored state has changed. From any thread.
  func groupMoved()
  /// Stores the group's state as it is now, and calls `body` on the writer's loop when it is on disk, or with the reason why it can't be; at once for a group
  /// that the topic doesn't have any more. From any thread.
  func storeGroup(_ group: Group, _ body: @escaping @Sendable (Fault?) -> Void)
}

/// A member of a group as the group sees it: it's told that there is something for it. The group's lock guards both variables.
package protocol GroupParticipant: AnyObject, Sendable {
  /// Its number in the group.
  var number: Int { get set }
  /// The state's count of revocations when the member last compared what it has in hand.
  var seenRevocations: UInt64 { get set }
  /// Has the member ask the group again, on its own loop. From any thread, without the group's lock.
  func call()
}

/// The loop on which an event of a group happens.
package protocol GroupLoop: AnyObject, Sendable {
  var loop: any EventLoop { get }
  /// Whether the broker serves; one that stops appends nothing any more.
  var isServing: Bool { get }
  /// The longest record that a topic takes, in bytes of its body.
  var longestRecord: Int { get }
  /// The way of dead letters at a node of a cluster; nil for a broker of one node, whose topics are all its own.
  var deadLetterRoute: (any DeadLetterRoute)? { get }

  /// Appends a dead letter to the topic `name`.
  ///
  /// - Parameter stored: called on `loop` when the dead letter is on disk, if the answer is ``GroupDeadLetter/keptLater``.
  func keep(
    _ deadLetter: BatchBuilder, in name: String, durably: Bool, _ stored: @escaping @Sendable (Fault?) -> Void
  ) -> GroupDeadLetter
  /// The topic of the dead letters takes none.
  func deadLettersWait(of group: String, on topic: String, in name: String, _ error: WireError)
}

/// What became of a dead letter.
package enum GroupDeadLetter {
  case kept
  /// It is appended, and the record is done with when it is on disk.
  case keptLater
  /// The dead-letter topic doesn't take it: it has ended, can't be made, or doesn't keep every record.
  case refused(WireError)
}
