/// The shards that belong to one node, found again only when the placement has changed: nodes come and go rarely, and there may be 10,000 shards.
struct OwnShards {
  private var placement: Placement?
  private var count = 0
  private var shards: Set<Int> = []

  mutating func belonging(to node: String, _ placement: Placement, of count: Int) -> Set<Int> {
    if self.placement != placement || self.count != count {
      (self.placement, self.count) = (placement, count)
      shards = Set((0..<count).lazy.filter { placement.target(of: $0) == node })
    }
    return shards
  }
}
