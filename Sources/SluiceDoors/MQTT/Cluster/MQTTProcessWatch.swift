import SluiceIO

/// Detects processes that have ended without reporting it: those in the roster whose nodes aren't alive, and since when.
struct MQTTProcessWatch {
  /// How long a process may be missing before it is declared gone.
  private static let grace = Duration.seconds(1)

  private var missing: [UInt64: MonotonicTime] = [:]
  /// Processes that were declared gone, until the log confirms it.
  private var declared: Set<UInt64> = []

  /// Clears all missing processes, because the live nodes or the roster are currently unknown.
  mutating func reset() { missing = [:] }

  /// The log confirms that the process has ended.
  mutating func forget(_ process: UInt64) {
    missing[process] = nil
    declared.remove(process)
  }

  /// Compares the roster with the nodes that are alive at that time.
  ///
  /// - Parameters:
  ///   - processes: the other processes of the roster, with the names of their nodes.
  ///   - nodes: the names of the live nodes.
  mutating func look(
    at processes: some Sequence<(process: UInt64, node: String)>, _ nodes: Set<String>, now: MonotonicTime
  ) {
    for (process, node) in processes {
      missing[process] = nodes.contains(node) ? nil : missing[process] ?? now
    }
  }

  /// Returns the processes that have been missing for long enough, in order. Each is returned once.
  mutating func takeDue(now: MonotonicTime) -> [UInt64] {
    let due = missing.filter { now >= $0.value + Self.grace && !declared.contains($0.key) }.keys.sorted()
    declared.formUnion(due)
    return due
  }

  /// Returns the processes whose nodes are alive, in order.
  func living(among processes: some Sequence<UInt64>) -> [UInt64] {
    processes.filter { missing[$0] == nil }.sorted()
  }
}
