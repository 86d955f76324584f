import SluiceIO
import Synchronization

/// Until when this node of a cluster may believe that its shards are its own, by its own clock. From any thread.
///
/// To deliver what the engine has confirmed needs no lease, since the engine refuses a former owner. Everything else does: acknowledgements, records that are
/// only in this process's memory, and what groups and durable cursors have come to. Loops look at the end of each turn, with the present time, so that a
/// process which was stopped for longer than its lease tells no client anything of the kind when it goes on.
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
