import SluiceTopics

/// All links of a loop to other nodes, those among them that have something to write, and how much waits in them.
struct LinkTable {
  private(set) var all: [NodeLinks] = []
  private var byKey: [NodeLinks.Key: NodeLinks] = [:]
  private var ready: [NodeLink] = []
  /// The change of the bytes buffered in links since it was taken last.
  private var newlyBuffered = 0

  subscript(key: NodeLinks.Key) -> NodeLinks? { byKey[key] }

  mutating func add(_ links: NodeLinks) {
    byKey[links.key] = links
    all.append(links)
  }

  /// Forgets links to nodes that aren't used.
  mutating func removeIdle() {
    for links in all where links.isIdle { byKey[links.key] = nil }
    all.removeAll(where: \.isIdle)
  }

  /// Why a node can't be reached, with its name; nil while all can.
  var problem: String? {
    all.first { $0.problem != nil }.map { "node \($0.key.node.name): \($0.problem ?? "")" }
  }

  /// Why a node can't be reached; nil when it could be at the last try.
  func problem(of node: RemoteNode) -> String? {
    all.first { $0.key.node == node && $0.problem != nil }?.problem
  }

  // MARK: What waits in them

  mutating func makeReady(_ link: NodeLink) { ready.append(link) }

  mutating func takeReady() -> [NodeLink] {
    defer { ready = [] }
    return ready
  }

  mutating func remove(_ link: NodeLink) { ready.removeAll { $0 === link } }

  mutating func buffered(_ change: Int) { newlyBuffered += change }

  /// Takes the change of the bytes buffered in links since the last call.
  mutating func takeBuffered() -> Int {
    defer { newlyBuffered = 0 }
    return newlyBuffered
  }

  /// The link with the most buffered bytes, and their number; nil while all buffers are empty.
  var fullest: (link: UInt64, bytes: Int)? {
    let most = all.flatMap(\.connections).max { $0.buffered < $1.buffered }
    return most.flatMap { $0.buffered > 0 ? ($0.id, $0.buffered) : nil }
  }

  func connection(_ id: UInt64) -> NodeLink? { all.lazy.flatMap(\.connections).first { $0.id == id } }
}
