import SluiceIO
import SluiceStore

/// Decides which other nodes have been silent for so long that their sessions may be ended.
///
/// A node can decide that only after the engine has served it without a gap for a lease: otherwise the node's own connection may cause the silence.
struct SilenceWatch {
  private let name: String
  private let lease: Duration
  /// Since when the watch has been current; nil while it isn't.
  private(set) var watchedSince: MonotonicTime?
  /// Since when this node's own lease has been valid; nil while it isn't.
  private var validSince: MonotonicTime?
  /// By the name of another node, this node's turn among those that may end its session.
  private var ranks: [String: Int64] = [:]

  /// - Parameters:
  ///   - name: this node's name.
  ///   - lease: how long a node may be silent.
  init(of name: String, lease: Duration) {
    self.name = name
    self.lease = lease
  }

  mutating func watched(since time: MonotonicTime?) { watchedSince = time }

  mutating func valid(since time: MonotonicTime?) { validSince = time }

  /// Notes that a node exists.
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

  /// Whether each live node must have been heard by now.
  func knowsAllLive(isValid: Bool, at now: MonotonicTime) -> Bool {
    servedSince(isValid: isValid).map { $0 + lease <= now } ?? false
  }

  /// When this node, which the engine has served since `servedSince`, may declare another one silent.
  private func silence(of entry: NodeEntry, _ node: String, _ servedSince: MonotonicTime) -> MonotonicTime {
    // The nodes take turns, so that one of many does it.
    max(entry.heard, servedSince) + lease + .milliseconds((ranks[node] ?? 0) * 20)
  }

  /// The silent nodes, sorted by name. Computed at each event, over all nodes.
  func silent(among nodes: [String: NodeEntry], isValid: Bool, at now: MonotonicTime) -> [String] {
    guard let servedSince = servedSince(isValid: isValid) else { return [] }
    var silent: [String] = []
    for (node, entry) in nodes where entry.isLive && entry.heard + lease <= now {
      if node != name, silence(of: entry, node, servedSince) <= now { silent.append(node) }
    }
    return silent.sorted()
  }

  /// When a node may be silent, or all live ones are known: the first such time after `now`, unless `first` is earlier.
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
      // Checked before its turn is looked up: most nodes are far from silent.
      if let first, entry.heard + lease >= first { continue }
      take(silence(of: entry, node, servedSince))
    }
    return first
  }
}
