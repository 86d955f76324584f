/// Which loop of a group gets a new connection.
public enum ConnectionPlacement: Hashable, Sendable {
  /// The one with the fewest streams; the first among equals.
  case leastLoaded
  /// The first loop, until it has that many streams, then the second, and so on; when all have as many, the least
  /// loaded. Connections that talk to each other stay on one thread while there are few of them.
  case filling(upTo: Int)

  /// The index of the loop that gets the next connection.
  ///
  /// - Parameter loads: the number of streams that each loop has; not empty.
  public func choose(from loads: some Collection<Int>) -> Int {
    precondition(!loads.isEmpty, "a loop group has at least one loop")
    if case .filling(let limit) = self {
      for (index, load) in loads.enumerated() where load < limit { return index }
    }
    var best = (index: 0, load: Int.max)
    for (index, load) in loads.enumerated() where load < best.load { best = (index, load) }
    return best.index
  }
}
