import SluiceIO
import Synchronization

/// The time until which this node of a cluster owns its shards, by its own clock. From any thread.
///
/// Delivering records that the engine has confirmed needs no lease, since the engine refuses a former owner. Everything else does: acknowledgements, records
/// that are only in this process's memory, and the progress of groups and durable cursors. Loops check the lease at the end of each turn, with the present
/// time, so a process that was paused for longer than its lease sends none of these to clients when it resumes.
package final class NodeLease: Sendable {
  private let end = Atomic<UInt64>(0)

  package init() {}

  /// - Parameter end: nil when the node has no lease.
  package func set(end: MonotonicTime?) {
    self.end.store(end?.nanoseconds ?? 0, ordering: .releasing)
  }

  package func isValid(at now: MonotonicTime) -> Bool {
    now.nanoseconds < end.load(ordering: .acquiring)
  }
}
