import SluiceTopics

/// A link to another node, as the table sees it.
protocol TabledLink: AnyObject {
  var id: UInt64 { get }
  /// The bytes that it holds.
  var buffered: Int { get }
}

/// The links to another node for one identity, as the table sees them.
protocol TabledLinks: AnyObject {
  associatedtype Link: TabledLink
  var key: NodeLinks.Key { get }
  /// Whether there is nothing to keep.
  var isIdle: Bool { get }
  /// Why the node can't be reached; nil when it could be at the last try.
  var problem: String? { get }
  /// The connections that are open or opening.
  var connections: [Link] { get }
}

extension NodeLink: TabledLink {}
extension NodeLinks: TabledLinks {}

/// All links of a loop to other nodes, those among them that have something to write, and how much waits in them.
struct LinkTable<Links: TabledLinks> {
  private(set) var all: [Links] = []
  private var byKey: [NodeLinks.Key: Links] = [:]
  private var ready: [Links.Link] = []
  /// The change of the bytes buffered in links since it was taken last.
  private var newlyBuffered = 0

  subscript(key: NodeLinks.Key) -> Links? { byKey[key] }

  mutating func add(_ links: Links) {
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

  mutating func makeReady(_ link: Links.Link) { ready.append(link) }

  mutating func takeReady() -> [Links.Link] {
    defer { ready = [] }
    return ready
  }

  mutating func remove(_ link: Links.Link) { ready.removeAll { $0 === link } }

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

  func connection(_ id: UInt64) -> Links.Link? { all.lazy.flatMap(\.connections).first { $0.id == id } }
}
