import SluiceIO

/// Which processes of a cluster's roster aren't among the nodes that live, and since when: what becomes of a process that has ended without a word.
struct MQTTProcessWatch {
  /// How long a process may be missing.
  private static let grace = Duration.seconds(1)

  private var missing: [UInt64: MonotonicTime] = [:]
  /// Those that were declared gone, until the log says so.
  private var declared: Set<UInt64> = []

  /// The nodes that live aren't known any more, or the roster isn't: none is missing.
  mutating func reset() { missing = [:] }

  /// The process is gone.
  mutating func forget(_ process: UInt64) {
    missing[process] = nil
    declared.remove(process)
  }

  /// Compares the roster with the nodes that live at that time.
  ///
  /// - Parameters:
  ///   - processes: with the names of their nodes, but for the process that looks.
  ///   - nodes: the names of the nodes that live.
  mutating func look(
    at processes: some Sequence<(process: UInt64, node: String)>, _ nodes: Set<String>, now: MonotonicTime
  ) {
    for (process, node) in processes {
      missing[process] = nodes.contains(node) ? nil : missing[process] ?? now
    }
  }

  /// The processes that have been missing for long enough, in order: each is told once.
  mutating func takeDue(now: MonotonicTime) -> [UInt64] {
    let due = missing.filter { now >= $0.value + Self.grace && !declared.contains($0.key) }.keys.sorted()
    declared.formUnion(due)
    return due
  }

  /// The processes whose nodes live, in order.
  func living(among processes: some Sequence<UInt64>) -> [UInt64] {
    processes.filter { missing[$0] == nil }.sorted()
  }
}
