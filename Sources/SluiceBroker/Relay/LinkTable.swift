import SluiceTopics

/// A link to another node, for ``LinkTable``.
protocol TabledLink: AnyObject {
  var id: UInt64 { get }
  /// The bytes buffered in it.
  var buffered: Int { get }
}

/// The links to another node for one identity, for ``LinkTable``.
protocol TabledLinks: AnyObject {
  associatedtype Link: TabledLink
  var key: NodeLinks.Key { get }
  /// Whether it has no connection and no timer, so that it can be removed.
  var isIdle: Bool { get }
  /// The reason why the node can't be reached; nil if the last attempt was successful.
  var problem: String? { get }
  /// The connections that are open or opening.
  var connections: [Link] { get }
}

extension NodeLink: TabledLink {}
extension NodeLinks: TabledLinks {}

/// All links of a loop to other nodes, the queue of those with pending output, and a count of their buffered bytes.
struct LinkTable<Links: TabledLinks> {
  private(set) var all: [Links] = []
  private var byKey: [NodeLinks.Key: Links] = [:]
  private var ready: [Links.Link] = []
  /// The change of the bytes buffered in links since the last call of ``takeBuffered()``.
  private var newlyBuffered = 0

  subscript(key: NodeLinks.Key) -> Links? { byKey[key] }

  mutating func add(_ links: Links) {
    byKey[links.key] = links
    all.append(links)
  }

  /// Removes links that aren't used.
  mutating func removeIdle() {
    for links in all where links.isIdle { byKey[links.key] = nil }
    all.removeAll(where: \.isIdle)
  }

  /// The first reason why a node can't be reached, with the node's name; nil while all can be reached.
  var problem: String? {
    all.first { $0.problem != nil }.map { "node \($0.key.node.name): \($0.problem ?? "")" }
  }

  /// The reason why a node can't be reached; nil if the last attempt was successful.
  func problem(of node: RemoteNode) -> String? {
    all.first { $0.key.node == node && $0.problem != nil }?.problem
  }

  // MARK: Buffered bytes

  mutating func makeReady(_ link: Links.Link) { ready.append(link) }

  mutating func takeReady() -> [Links.Link] {
    defer { ready = [] }
    return ready
  }

  mutating func remove(_ link: Links.Link) { ready.removeAll { $0 === link } }

  mutating func buffered(_ change: Int) { newlyBuffered += change }

  /// Returns the change of the bytes buffered in links since the last call.
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
