import SluiceBroker
import SluiceTopics
import SluiceWire
import TestSupport
import Testing

@testable import SluiceAdmin

/// The broker's history: rings compared with a model that keeps everything, and samples of the broker.
@Suite struct HistoryTests {
  /// A ring that keeps every value.
  private struct NaiveRing {
    var bucket: Int64
    var count: Int
    var added: [(time: Int64, value: Double)] = []

    func values(in times: Range<Int64>) -> [Int64: Double] {
      guard let newest = added.last.map({ $0.time / bucket }) else { return [:] }
      var groups: [Int64: [Double]] = [:]
      for (time, value) in added { groups[time / bucket, default: []].append(value) }
      var found: [Int64: Double] = [:]
      for (number, values) in groups where number > newest - Int64(count) && times.contains(number * bucket) {
        found[number * bucket] = values.reduce(0, +) / Double(values.count)
      }
      return found
    }
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func aRingIsAsOneThatRemembersEverything(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let bucket = Int64.random(in: 1...50, using: &random)
    let count = Int.random(in: 1...12, using: &random)
    var ring = HistoryRing(bucket: bucket, count: count)
    var naive = NaiveRing(bucket: bucket, count: count)
    var time = Int64.random(in: 0...1_000, using: &random)
    for _ in 0..<Int.random(in: 0...120, using: &random) {
      let value = Double(Int.random(in: -5...5, using: &random))
      ring.add(value, at: time)
      naive.added.append((time, value))
      let isLong = Int.random(in: 0..<20, using: &random) == 0
      time += Int64.random(in: 0...(isLong ? bucket * Int64(count) * 3 : bucket * 2), using: &random)
      let start = time - Int64.random(in: 0...bucket * Int64(count + 2), using: &random)
      let range = start..<start + Int64.random(in: 0...bucket * Int64(count + 2), using: &random)
      let (first, values) = ring.values(in: range)
      var found: [Int64: Double] = [:]
      for (index, value) in values.enumerated() {
        if let value { found[first + Int64(index) * bucket] = Double(value) }
      }
      let expected = naive.values(in: range)
      #expect(Set(found.keys) == Set(expected.keys), "seed \(seed), \(range)")
      for (key, value) in expected { #expect(abs((found[key] ?? .infinity) - value) < 1e-4) }
      #expect(values.count <= count)
    }
  }

  // MARK: Samples

  private func snapshot(_ time: Int64, _ received: [String: UInt64], metrics: Int = 0) -> BrokerSnapshot {
    var snapshot = BrokerSnapshot()
    snapshot.time = time
    snapshot.topics = received.keys.sorted().map { name in
      TopicSnapshot(name) { topic in
        topic.traffic.received = received[name]!
        topic.lag = 7
      }
    }
    snapshot.topicCount = snapshot.topics.count
    snapshot.metrics = BrokerMetric.allCases.map { ($0, metrics) }
    return snapshot
  }

  private func values(_ history: History, _ topic: String?, _ name: String, _ range: Range<Int64>) -> [Float?]
  {
    let chart = history.chart(of: topic, in: range, now: range.upperBound)
    return chart?.values.first { $0.name == name }?.values ?? []
  }

  @Test func countersBecomeRates() {
    var history = History()
    for (second, count) in [0, 10, 30, 30].enumerated() {
      history.add(
        snapshot(1_000_000 + Int64(second) * 1_000, ["t": UInt64(count)], metrics: count), residentBytes: 5)
    }
    let range: Range<Int64> = 1_000_000..<1_004_000
    #expect(values(history, "t", "received", range) == [10, 20, 0])
    #expect(values(history, "t", "lag", range) == [7, 7, 7])
    #expect(values(history, nil, "received", range) == [nil, 10, 20, 0])
    #expect(values(history, nil, "residentBytes", range) == [5, 5, 5, 5])
    #expect(history.chart(of: "elsewhere", in: range, now: 1_004_000) == nil)
  }

  @Test("A node's commits and shards have series, and a broker of one node has none")
  func cluster() {
    var history = History()
    var cluster = ClusterSnapshot(
      ClusterInfo(
        name: "n1", unreadiness: "", engine: ClusterInfo.Engine(isConnected: true), nodes: [], shardCount: 2,
        shards: [
          ClusterInfo.Shard(number: 0, state: .held, owner: "n1", term: 5, target: "n1", pin: ""),
          ClusterInfo.Shard(number: 1, state: .held, owner: "n2", term: 6, target: "n2", pin: ""),
        ]), isLeaseValid: true)
    for second in 0..<4 {
      (cluster.commitCounts, cluster.commitTotal) = ([UInt64(second) * 10], UInt64(second) * 25_000_000)
      history.add(snapshot(1_000_000 + Int64(second) * 1_000, [:]), residentBytes: 0, cluster: cluster)
    }
    let range: Range<Int64> = 1_000_000..<1_004_000
    #expect(values(history, nil, "commits", range) == [nil, 10, 10, 10])
    #expect(values(history, nil, "commitMilliseconds", range) == [nil, 2.5, 2.5, 2.5])
    #expect(values(history, nil, "shards", range) == [1, 1, 1, 1])
    var alone = History()
    for second in 0..<4 { alone.add(snapshot(1_000_000 + Int64(second) * 1_000, [:]), residentBytes: 0) }
    for name in ["commits", "commitMilliseconds", "shards"] {
      #expect(values(alone, nil, name, range).allSatisfy { $0 == nil }, "\(name)")
    }
  }

  @Test func aTopicThatWasMadeAnewBeginsAtZero() {
    var history = History()
    history.add(snapshot(1_000, ["t": 100]), residentBytes: 0)
    history.add(snapshot(2_000, ["t": 110]), residentBytes: 0)
    var anew = snapshot(3_000, ["t": 3])
    anew.topics[0].summary.epoch = 2
    history.add(anew, residentBytes: 0)
    #expect(values(history, "t", "received", 0..<4_000) == [10, 0])
  }

  @Test func theMostActiveTopicsHaveSeries() {
    var limits = HistoryLimits()
    limits.topics = 2
    var history = History(limits)
    var counts: [String: UInt64] = ["a": 0, "b": 0, "c": 0]
    for second in 0..<400 {
      counts["a"]! += 1
      counts["b"]! += 2
      // It appears late, and is the most active.
      if second >= 100 { counts["c"]! += 1_000 }
      history.add(snapshot(Int64(second) * 1_000, counts), residentBytes: 0)
    }
    #expect(history.topicNames == ["b", "c"])
    // Its size is bounded, and reported.
    #expect(
      history.bytes
        == (History.BrokerMeasure.allCases.count + 2 * History.TopicMeasure.allCases.count) * 2_070 * 4)
  }

  @Test func theFinestResolutionThatReachesBackIsChosen() {
    var history = History()
    for second in 0..<30_000 as Range<Int64> {
      history.add(snapshot(second * 1_000, [:]), residentBytes: 0)
    }
    func step(_ seconds: Int64, _ asked: Int64? = nil) -> Int64? {
      let now: Int64 = 30_000_000
      return history.chart(of: nil, in: now - seconds * 1_000..<now, step: asked, now: now)?.step
    }
    #expect(step(60) == 1_000 && step(600) == 1_000 && step(3_600) == 10_000 && step(86_400) == 120_000)
    #expect(step(60, 10_000) == 10_000 && step(60, 100) == 1_000)
    let chart = history.chart(of: nil, in: 0..<30_000_000, now: 30_000_000)
    #expect(chart?.values.first?.values.count == 250)
  }

  @Test func withoutALengthNothingIsKept() {
    var limits = HistoryLimits()
    limits.length = 0
    var history = History(limits)
    history.add(snapshot(1_000, ["t": 1]), residentBytes: 0)
    #expect(history.topicNames.isEmpty)
  }
}
