import SluiceStore

/// Assigns shards to nodes: rendezvous hashing over the live nodes that their peers reach. A new node takes its share from all others; a node that leaves
/// returns its share to all others.
struct Placement: Hashable, Sendable {
  /// The nodes that may have shards, sorted.
  let nodes: [String]
  private let pins: [Int: String]
  private let hashes: [UInt64]

  init(_ directory: Directory) {
    let eligible = directory.eligible
    let undrained = eligible.filter { !directory.drained.contains($0) }
    self.init(nodes: undrained.isEmpty ? eligible : undrained, pins: directory.pins)
  }

  init(nodes: [String], pins: [Int: String] = [:]) {
    self.nodes = nodes.sorted()
    self.pins = pins
    hashes = self.nodes.map { ShardHash.hash($0) }
  }

  /// The node to which a shard belongs; nil without nodes.
  func target(of shard: Int) -> String? {
    if let pin = pins[shard], nodes.contains(pin) { return pin }
    var best: (score: UInt64, node: String)?
    for (node, hash) in zip(nodes, hashes) {
      let score = ShardHash.mix(hash ^ ShardHash.mix(UInt64(shard) &+ 1))
      if best.map({ score > $0.score }) ?? true { best = (score, node) }
    }
    return best?.node
  }
}
