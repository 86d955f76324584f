/// How a record comes through a cluster.
enum ClusterPath: String, CaseIterable {
  /// To the broker, which acknowledges it.
  case publishing
  /// To a subscriber that goes to the topic's owner by itself.
  case delivering
  /// To a subscriber at another node than the one that was taken away, which stays there and is served by it.
  case relaying
}

/// How long the records of a cluster's topics didn't come through for one loss.
struct ClusterPause: CustomStringConvertible {
  enum Measure: String {
    /// The time from a loss until the first record that each producer published after it has come through.
    case first = "all topics go on after"
    /// The longest time between two records of one producer, all of which publish steadily. Of what is planned, where topics pause one after the other.
    case gaps = "longest time without a record of one producer"
  }

  let measure: Measure
  /// In seconds.
  private(set) var taken: [ClusterPath: Double] = [:]
  /// From the end of a cut, where topics waited for it.
  private(set) var afterCut: [ClusterPath: Double] = [:]
  /// The longest time without a record of each topic that moved, in seconds: what a topic's own clients noticed.
  private(set) var moved: [ClusterPath: [Double]] = [:]

  init(_ measure: Measure) {
    self.measure = measure
  }

  /// The ways in which topics haven't gone on.
  var missing: Set<ClusterPath> { Set(ClusterPath.allCases).subtracting(taken.keys) }

  /// Notes when the first record came through. Later ones change nothing.
  mutating func goesOn(_ path: ClusterPath, after seconds: Double, afterCut cut: Double? = nil) {
    guard taken[path] == nil else { return }
    taken[path] = seconds
    afterCut[path] = cut
  }

  /// Notes how long a topic paused that another node has now.
  mutating func moved(_ path: ClusterPath, after seconds: Double) {
    moved[path, default: []].append(seconds)
  }

  /// Of several losses, one after the other, the longest.
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

  /// The upper one of two medians, so that nothing is called faster than it was.
  private static func figures(_ seconds: [Double]) -> String {
    let sorted = seconds.sorted()
    return
      "median \(sorted[sorted.count / 2].inMilliseconds), longest \(sorted[sorted.count - 1].inMilliseconds)"
  }
}

extension Double {
  fileprivate var inMilliseconds: String { "\(Int((self * 1000).rounded())) ms" }
}
