import SluiceIO
import SluiceStore

/// Which other nodes have been silent for so long that their sessions may be ended.
///
/// A node can tell only while the engine has served it without a gap for a lease: otherwise the silence may be its own.
struct SilenceWatch {
  private let name: String
  private let lease: Duration
  /// Since when the watch has been current; nil while it isn't.
  private(set) var watchedSince: MonotonicTime?
  /// Since when this node's own lease has been valid; nil while it isn't.
  private var validSince: MonotonicTime?
  /// The turn of this node among those that may call another one silent, by that node's name.
  private var ranks: [String: Int64] = [:]

  /// - Parameters:
  ///   - name: this node's.
  ///   - lease: how long a node may be silent.
  init(of name: String, lease: Duration) {
    self.name = name
    self.lease = lease
  }

  mutating func watched(since time: MonotonicTime?) { watchedSince = time }

  mutating func valid(since time: MonotonicTime?) { validSince = time }

  /// A node is known.
  mutating func met(_ node: String) {
    if ranks[node] == nil { ranks[node] = Int64(ShardHash.hash("\(name) \(node)") % 8) }
  }

  /// Since when the engine has served this node without a gap; nil while it doesn't.
  ///
  /// - Parameter isValid: whether this node's lease is valid now.
  func servedSince(isValid: Bool) -> MonotonicTime? {
    guard isValid, let validSince, let watchedSince else { return nil }
    return max(validSince, watchedSince)
  }

  /// Whether each node that lives must have been heard by now.
  func knowsAllLive(isValid: Bool, at now: MonotonicTime) -> Bool {
    servedSince(isValid: isValid).map { $0 + lease <= now } ?? false
  }

  /// When this node, which the engine has served since `servedSince`, may call another one silent.
  private func silence(of entry: NodeEntry, _ node: String, _ servedSince: MonotonicTime) -> MonotonicTime {
    // The nodes take turns, so that one of many does it.
    max(entry.heard, servedSince) + lease + .milliseconds((ranks[node] ?? 0) * 20)
  }

  /// The nodes that are silent, sorted by name. Looked up at each event, over all nodes.
  func silent(among nodes: [String: NodeEntry], isValid: Bool, at now: MonotonicTime) -> [String] {
    guard let servedSince = servedSince(isValid: isValid) else { return [] }
    var silent: [String] = []
    for (node, entry) in nodes where entry.isLive && entry.heard + lease <= now {
      if node != name, silence(of: entry, node, servedSince) <= now { silent.append(node) }
    }
    return silent.sorted()
  }

  /// When a node may be silent, or all that live are known: the first such time after `now`, unless `first` is earlier.
  func deadline(
    _ first: MonotonicTime?, among nodes: [String: NodeEntry], isValid: Bool, at now: MonotonicTime
  ) -> MonotonicTime? {
    guard let servedSince = servedSince(isValid: isValid) else { return first }
    var first = first
    func take(_ time: MonotonicTime) {
      if time > now, first.map({ time < $0 }) ?? true { first = time }
    }
    take(servedSince + lease)
    for (node, entry) in nodes where entry.isLive && node != name {
      // Before its turn is looked up: most of the nodes are far from silent.
      if let first, entry.heard + lease >= first { continue }
      take(silence(of: entry, node, servedSince))
    }
    return first
  }
}
