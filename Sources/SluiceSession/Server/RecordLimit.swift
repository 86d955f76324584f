import Synchronization

/// The longest record that a broker takes: what its operator allows, or less where its store can't keep as much. From any thread.
package final class RecordLimit: Sendable {
  /// The operator's limit, in bytes.
  package let configured: Int
  private let bytes: Atomic<Int>

  package init(_ configured: Int) {
    self.configured = configured
    bytes = Atomic(configured)
  }

  /// The longest record at the moment, in bytes. Clients learn it when they connect.
  package var present: Int { bytes.load(ordering: .relaxed) }

  /// From now on the store takes records of so many bytes. The operator's limit holds besides.
  package func bound(by store: Int) { bytes.store(max(1, min(configured, store)), ordering: .relaxed) }
}
