import Glibc
import SluiceEngineModel
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceCluster

/// Brokers, their engine and clients under faults drawn from a seed: acknowledged records exist once and in order, at whichever node a client reads them.
///
/// `SLUICE_SEED=n` plays one seed, and prints its events; `SLUICE_SEEDS=m-n` plays those seeds; `SLUICE_SEED_BASE=n` plays seeds from n on. A story takes a
/// tenth of a second in a debug build, on average.
@Suite("A cluster with clients under faults")
struct WholeClusterSeedTests {
  /// The number of new seeds in a run; the first ones are those that ``reach()`` plays.
  private static let count: UInt64 = 1_000
  /// Played with the stories of the time when they failed: today's stories of these seeds differ.
  private static let onceFailed: [UInt64] = [652]
  /// Seeds that have failed since.
  private static let failedSince: [UInt64] = [288, 9_375, 17_076, 795_806_916, 795_807_486, 795_874_056]
  /// How many seeds a test case plays one after another; test cases run concurrently.
  private static let together = 20
  /// How many seeds must reach every kind of fault and load.
  private static let reaching = 100

  private static let seeds: [UInt64] = {
    if let seed = variable("SLUICE_SEED").flatMap({ UInt64($0) }) { return [seed] }
    if let ends = variable("SLUICE_SEEDS")?.split(separator: "-").compactMap({ UInt64($0) }), ends.count == 2
    {
      return Array(ends[0]...ends[1])
    }
    let base = variable("SLUICE_SEED_BASE").flatMap { UInt64($0) } ?? UInt64(time(nil)) % 1_000_000_000
    print("Clusters with clients play seeds from \(base) on: SLUICE_SEED_BASE=\(base) plays the same again.")
    return onceFailed + failedSince + (base..<base + count)
  }()

  private static var others: [UInt64] { Array(seeds.dropFirst(reaching)) }

  private static func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  @Test(
    "every acknowledged record is delivered once and in order",
    arguments: stride(from: 0, to: others.count, by: together).map {
      Array(others[$0..<min($0 + together, others.count)])
    })
  func play(seeds: [UInt64]) throws {
    for seed in seeds { _ = try play(seed) }
  }

  /// - Returns: the number of occurrences of each event.
  private func play(_ seed: UInt64) throws -> [String: Int] {
    let story = try WholeStory(seed: seed, isFormer: Self.onceFailed.contains(seed))
    if Self.variable("SLUICE_SEED") != nil { story.cluster.world.trace = { print($0) } }
    try story.play()
    #expect(
      story.problems == [], "SLUICE_SEED=\(seed) swift test --filter WholeClusterSeedTests plays it again")
    return story.counts
  }

  @Test("every kind of fault, and all that clients can meet, happens in a hundred seeds")
  func reach() throws {
    var counts: [String: Int] = [:]
    for seed in Self.seeds.prefix(Self.reaching) { counts.merge(try play(seed), uniquingKeysWith: +) }
    guard Self.seeds.count >= Self.reaching else { return }
    print(
      "In \(Self.reaching) clusters: \(counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" })")
    let wanted = StoryFault.allCases.map(\.rawValue) + WholeStory.met
    #expect(wanted.filter { counts[$0, default: 0] == 0 } == [])
  }

  @Test("a seed plays the same story each time", arguments: [3, 8, 152] as [UInt64])
  func repetition(seed: UInt64) throws {
    let first = try lines(of: seed)
    let second = try lines(of: seed)
    let difference = zip(first, second).first { $0 != $1 }
    #expect(difference == nil && first.count == second.count)
    #expect(!first.isEmpty)
  }

  /// All events of a seed's story.
  private func lines(of seed: UInt64) throws -> [String] {
    var lines: [String] = []
    let story = try WholeStory(seed: seed)
    story.cluster.world.trace = { lines.append($0) }
    try story.play()
    story.cluster.world.trace = nil
    return lines
  }

  @Test("what goes wrong between clients and brokers is noticed", arguments: LoadFlaw.allCases)
  func loadFlaws(flaw: LoadFlaw) throws {
    let isNoticed = try hundredSeedsShowProblems { try WholeStory(seed: $0, loadFlaw: flaw) }
    #expect(isNoticed, "100 seeds have not shown the flaw \(flaw)")
  }

  @Test("a store that doesn't do its part is noticed", arguments: EngineFlaw.allCases)
  func flaws(flaw: EngineFlaw) throws {
    let isNoticed = try hundredSeedsShowProblems { try WholeStory(seed: $0, flaw: flaw) }
    #expect(isNoticed, "100 seeds have not shown that shards' stores have the flaw \(flaw)")
  }

  private func hundredSeedsShowProblems(_ story: (UInt64) throws -> WholeStory) throws -> Bool {
    try (1...100 as ClosedRange<UInt64>).contains { seed in
      let story = try story(seed)
      try story.play()
      return !story.problems.isEmpty
    }
  }
}
