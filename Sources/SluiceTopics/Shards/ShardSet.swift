import SluiceStore

/// A set of shards, reduced to two numbers with which nodes check that they mean the same set.
package struct ShardSet: Hashable, Sendable {
  /// How many shards there are.
  package var count: UInt64
  /// The sum of the shards' hashes, modulo 2⁶⁴.
  package var hash: UInt64

  package init(count: UInt64 = 0, hash: UInt64 = 0) {
    self.count = count
    self.hash = hash
  }

  package init(_ shards: some Sequence<ShardID>) {
    self.init()
    for shard in shards { insert(shard) }
  }

  /// Adds a shard, which isn't in the set.
  package mutating func insert(_ shard: ShardID) {
    count += 1
    // The finalizer of SplitMix64.
    var bits = (UInt64(shard.rawValue) &+ 1) &* 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    hash &+= bits ^ (bits >> 31)
  }
}

/// Which nodes serve which shards, if every shard has a node.
package struct ShardAgreement: Hashable, Sendable {
  /// This node's shards.
  package var own = ShardSet()
  /// The shards of the other nodes that have some.
  package var others: [RemoteNode: ShardSet] = [:]

  package init() {}
}
