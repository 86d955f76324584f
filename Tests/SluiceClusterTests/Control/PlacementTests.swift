import SluiceStore
import Testing

@testable import SluiceCluster

@Suite("Placement of shards")
struct PlacementTests {
  @Test("each node gets its share")
  func shares() {
    let placement = Placement(nodes: ["a", "b", "c", "d"])
    var counts: [String: Int] = [:]
    for shard in 0..<4_096 { counts[placement.target(of: shard)!, default: 0] += 1 }
    for node in placement.nodes { #expect((900...1_150).contains(counts[node] ?? 0)) }
  }

  @Test(
    "a node that comes takes from all others, and one that goes leaves to all others, and nothing else moves")
  func changes() {
    let before = Placement(nodes: ["a", "b", "c"])
    let after = Placement(nodes: ["a", "b", "c", "d"])
    var givers: Set<String> = []
    for shard in 0..<256 {
      let (old, new) = (before.target(of: shard)!, after.target(of: shard)!)
      guard old != new else { continue }
      #expect(new == "d")
      givers.insert(old)
    }
    #expect(givers == ["a", "b", "c"])
  }

  @Test("a pin holds while its node may have shards")
  func pins() {
    let pinned = Placement(nodes: ["a", "b"], pins: [0: "a", 1: "b", 2: "gone"])
    #expect(pinned.target(of: 0) == "a")
    #expect(pinned.target(of: 1) == "b")
    #expect(pinned.target(of: 2) == Placement(nodes: ["a", "b"]).target(of: 2))
    #expect(Placement(nodes: []).target(of: 0) == nil)
  }

  @Test("names have the same shard in every version")
  func hashes() {
    #expect(
      ["", "a", "orders.eu.new", "orders.eu.old"].map { ShardHash.shard(of: $0, of: 64) } == [61, 0, 39, 12])
    var counts = [Int](repeating: 0, count: 64)
    for number in 0..<6_400 { counts[ShardHash.shard(of: "topic.\(number)", of: 64)] += 1 }
    #expect(counts.allSatisfy { (50...150).contains($0) })
  }
}
