import SluiceIO
import SluiceStore
import SluiceWire

/// A durable topic as the store's service sees it: what it has to write, and what it learns of that. The service calls it on the writer's loop.
package protocol DurableTopic: AnyObject, Sendable {
  var name: String { get }
  var storage: StoreTopicState? { get }
  var isDeleted: Bool { get }
  /// The first offset that the topic's flow control needs; nil when it needs none.
  var keptFrom: UInt64? { get }

  /// Takes what waits to be written; nil when nothing does.
  func takeForCommit(at clocks: ClockReading) -> (
    taken: UncommittedTail.Taken, change: TopicChange, keep: UInt64?
  )?
  /// Puts back what was taken, since there was nothing to write or the commit has failed.
  func undo(_ taken: UncommittedTail.Taken)
  /// The commit is on disk.
  func committed(_ commit: TopicCommit)
  /// The store refuses what was taken, for good. Returns what is dropped: the bytes that waited, and the calls that wait for a commit.
  func quarantine(_ taken: UncommittedTail.Taken, _ fault: Fault) -> (
    bytes: Int, completions: [UncommittedTail.Completion]
  )
}
