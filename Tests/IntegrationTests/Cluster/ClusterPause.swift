/// A way of a record through a cluster.
enum ClusterPath: String, CaseIterable {
  /// To the broker, which acknowledges it.
  case publishing
  /// To a subscriber that connects to the topic's owner itself.
  case delivering
  /// To a subscriber that stays at a node other than the removed one, which relays the records.
  case relaying
}

/// How long no records of a cluster's topics arrived because of one loss.
struct ClusterPause: CustomStringConvertible {
  enum Measure: String {
    /// The time from a loss until the first later record of each producer has arrived.
    case first = "all topics go on after"
    /// The longest time between two records of one producer, while all publish steadily. Used for planned events, in which topics pause one after the
    /// other.
    case gaps = "longest time without a record of one producer"
  }

  let measure: Measure
  /// In seconds.
  private(set) var taken: [ClusterPath: Double] = [:]
  /// In seconds from the end of a cut, if topics waited for it.
  private(set) var afterCut: [ClusterPath: Double] = [:]
  /// The longest time without a record of each topic that moved, in seconds, as its clients saw it.
  private(set) var moved: [ClusterPath: [Double]] = [:]

  init(_ measure: Measure) {
    self.measure = measure
  }

  /// The ways in which topics haven't continued.
  var missing: Set<ClusterPath> { Set(ClusterPath.allCases).subtracting(taken.keys) }

  /// Records when the first record arrived. Later calls change nothing.
  mutating func goesOn(_ path: ClusterPath, after seconds: Double, afterCut cut: Double? = nil) {
    guard taken[path] == nil else { return }
    taken[path] = seconds
    afterCut[path] = cut
  }

  /// Records how long a topic paused that has moved to another node.
  mutating func moved(_ path: ClusterPath, after seconds: Double) {
    moved[path, default: []].append(seconds)
  }

  /// Keeps the longest pause of several consecutive losses.
  mutating func extend(by other: ClusterPause) {
    moved.merge(other.moved) { $0 + $1 }
    taken.merge(other.taken) { max($0, $1) }
    afterCut.merge(other.afterCut) { max($0, $1) }
  }

  var description: String {
    let parts = ClusterPath.allCases.compactMap { path in
      taken[path].map { seconds in
        var text = "\(path.rawValue) \(seconds.inMilliseconds)"
        if let moved = moved[path] { text += " (\(moved.count) topics that moved: \(Self.figures(moved)))" }
        return afterCut[path].map { "\(text), \($0.inMilliseconds) after the cut's end" } ?? text
      }
    }
    return "\(measure.rawValue): \(parts.joined(separator: "; "))"
  }

  /// Medians and maxima of several losses of one kind.
  static func summary(of pauses: [ClusterPause]) -> String {
    let parts = ClusterPath.allCases.compactMap { path -> String? in
      let taken = pauses.compactMap { $0.taken[path] }
      guard !taken.isEmpty else { return nil }
      let waited = pauses.compactMap { $0.afterCut[path] }
      let moved = pauses.flatMap { $0.moved[path] ?? [] }
      return "\(path.rawValue) \(figures(taken))"
        + (moved.isEmpty ? "" : " (\(moved.count) topics that moved: \(figures(moved)))")
        + (waited.isEmpty
          ? ""
          : " (from the cut's end, where topics waited for it: \(waited.count) times, \(figures(waited)))")
    }
    let measure = pauses.first.map { "\($0.measure.rawValue): " } ?? ""
    return "\(pauses.count) times, \(measure)\(parts.joined(separator: "; "))"
  }

  /// The upper of two medians, so that nothing is reported as faster than it was.
  private static func figures(_ seconds: [Double]) -> String {
    let sorted = seconds.sorted()
    return
      "median \(sorted[sorted.count / 2].inMilliseconds), longest \(sorted[sorted.count - 1].inMilliseconds)"
  }
}

extension Double {
  fileprivate var inMilliseconds: String { "\(Int((self * 1000).rounded())) ms" }
}
