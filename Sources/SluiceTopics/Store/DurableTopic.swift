import SluiceIO
import SluiceStore
import SluiceWire

/// The interface through which the store's service gets a durable topic's changes and reports their commits. The service calls it on the writer's loop.
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
  /// Restores changes that were taken, because there was nothing to write or the commit has failed.
  func undo(_ taken: UncommittedTail.Taken)
  /// Completes a commit that is on disk.
  func committed(_ commit: TopicCommit)
  /// Drops changes that the store refuses permanently. Returns the waiting bytes that are dropped, and the callbacks that wait for a commit.
  func quarantine(_ taken: UncommittedTail.Taken, _ fault: Fault) -> (
    bytes: Int, completions: [UncommittedTail.Completion]
  )
}
