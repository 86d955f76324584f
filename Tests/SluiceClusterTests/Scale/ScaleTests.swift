import Glibc
import SluiceIO
import SluiceStore
import Testing

@testable import SluiceCluster

/// The cost of a cluster larger than the machines at hand, in counters. `SLUICE_CLUSTER_SCALE=100x10000` plays 100 nodes and 10,000 shards and prints the
/// counts; a normal run plays a small cluster.
@Suite("A large cluster in counters", .serialized)
struct ScaleTests {
  private static let size: (nodes: Int, shards: Int) = {
    let text = getenv("SLUICE_CLUSTER_SCALE").map { String(cString: $0) } ?? "10x320"
    let numbers = text.split(separator: "x").compactMap { Int($0) }
    return numbers.count == 2 ? (numbers[0], numbers[1]) : (10, 320)
  }()

  private static let isPrinting = getenv("SLUICE_CLUSTER_SCALE") != nil

  private func tell(_ text: @autoclosure () -> String) { if Self.isPrinting { Swift.print(text()) } }

  @Test("the directory's traffic, a death, many deaths, and one more node")
  func directory() {
    let (nodes, shards) = Self.size
    let scale = ControlScale(shards: shards)
    for node in 0..<nodes { scale.start(node) }
    #expect(scale.run(limit: .seconds(600)) { scale.isSettled })
    tell("settled \(nodes) nodes and \(shards) shards after \(scale.now.nanoseconds / 1_000_000 - 1_000) ms")

    scale.forgetCounts()
    _ = scale.run(limit: .seconds(10))
    // Only a node's renewal every half second.
    #expect(scale.stored.keys.sorted() == ["node"])
    #expect((nodes * 19...nodes * 21).contains(scale.stored["node"] ?? 0))
    tell(scale, "at rest", seconds: 10)

    scale.forgetCounts()
    scale.kill(0)
    #expect(scale.run(limit: .seconds(60)) { scale.isSettled })
    tell(scale, "one node dead")
    // Every shard of the dead node is taken once, and no other one moves.
    #expect(scale.takeOvers.count == scale.stored["shard"])
    let share = shards / nodes
    #expect((share / 2...share * 2).contains(scale.takeOvers.count))

    let dead = max(nodes / 10, 1)
    scale.forgetCounts()
    for node in 1...dead { scale.kill(node) }
    #expect(scale.run(limit: .seconds(60)) { scale.isSettled })
    tell(scale, "\(dead) nodes dead at once")

    scale.forgetCounts()
    scale.start(nodes)
    #expect(scale.run(limit: .seconds(600)) { scale.isSettled })
    tell(scale, "one more node")
    #expect((share / 2...share * 2).contains(scale.takeOvers.count))
  }

  private func tell(_ scale: ControlScale, _ what: String, seconds: Int? = nil) {
    let count = scale.stored.values.reduce(0, +)
    let took = scale.takeOvers.map { $0.duration.clampedNanoseconds / 1_000_000 }.sorted()
    var text = "\(what): \(count) messages stored \(scale.stored), \(scale.delivered) delivered"
    if let seconds {
      text += "; a second \(count / seconds) and \(scale.delivered / seconds), "
      text += "\(Int(scale.decisionSeconds * 1_000_000 / Double(seconds * scale.controls.count))) µs a node"
    }
    if let middle = took.dropFirst(took.count / 2).first, let last = took.last {
      text += "; \(took.count) shards taken over, median \(middle) ms, longest \(last) ms"
    }
    tell(text)
  }

  @Test("relays: how many topics a node relays, and how many nodes a topic goes to")
  func relays() {
    let isLarge = Self.isPrinting
    let (nodes, shards) = Self.size
    let topics = isLarge ? 1_000_000 : 2_000
    let subscribers = isLarge ? 10_000_000 : 20_000
    var random = FixedRandom()
    let placement = Placement(nodes: (0..<nodes).map { "node-\($0)" })
    let owners = (0..<shards).map { Int(placement.target(of: $0)!.dropFirst(5))! }
    let owner = (0..<topics).map { owners[ShardHash.shard(of: "topic.\($0)", of: shards)] }
    for (name, isSkewed) in [("evenly", false), ("by Zipf's law", true)] {
      var relayed = [Bool](repeating: false, count: topics * nodes)
      var (local, upstream) = (0, 0)
      for _ in 0..<subscribers {
        let node = Int(UInt64.random(in: 0..<UInt64(nodes), using: &random))
        let topic: Int
        if isSkewed {
          // Approximately the inverse of the distribution with exponent 1.
          let u = Double(UInt64.random(in: 0..<1 << 40, using: &random)) / Double(1 << 40)
          topic = min(Int(exp(u * Glibc.log(Double(topics)))) - 1, topics - 1)
        } else {
          topic = Int(UInt64.random(in: 0..<UInt64(topics), using: &random))
        }
        if owner[topic] == node {
          local += 1
        } else if !relayed[topic * nodes + node] {
          relayed[topic * nodes + node] = true
          upstream += 1
        }
      }
      let counts = (0..<topics).map { topic in
        (0..<nodes).count { relayed[topic * nodes + $0] }
      }
      // At most one upstream subscription for each node and topic.
      #expect(counts.allSatisfy { $0 < nodes })
      #expect(upstream <= subscribers - local)
      tell(
        "\(subscribers) subscribers of \(topics) topics, spread \(name): \(upstream) upstream subscriptions, "
          + "\(upstream / nodes) a node; \(Double(upstream) / Double(topics)) nodes a topic on average, "
          + "\(counts.max() ?? 0) at most; \(100 * local / subscribers) % are with the owner")
    }
  }
}

/// The same numbers in every run.
private struct FixedRandom: RandomNumberGenerator {
  private var state: UInt64 = 7

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return ShardHash.mix(state)
  }
}
