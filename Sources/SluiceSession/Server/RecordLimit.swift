import Synchronization

/// The longest record that a broker accepts: the operator's limit, or less if its store can't hold as much. From any thread.
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

  /// From this call on, the store accepts records of so many bytes. The operator's limit holds besides.
  package func bound(by store: Int) { bytes.store(max(1, min(configured, store)), ordering: .relaxed) }
}
