import Foundation
import TestSupport

/// The kinds of scenarios made from seeds, and how many seeds of each a test run plays.
enum Story {
  /// All kinds of clients and faults; see `SeedTests`.
  case everything
  /// The same, with storms of frames; see `StormSeedTests`.
  case storms
  /// Durable topics across crashes and disk failures.
  case durable
  /// Backups and copies that replace a durable broker's store.
  case history
  /// Groups of unreliable workers.
  case groups
  /// Identities and permissions that change.
  case access
  /// Subscriptions to patterns.
  case patterns
  /// Settings stated by clients, topics that stay connected, and topics that fail without producers; see `StatementSeedTests`.
  case statements
  /// Dropped records never come back; see `FloorOracleTests`.
  case floor

  /// The number of seeds of a test run, including those that failed before.
  var count: Int {
    switch self {
    case .everything: 1_000
    case .storms: 80
    case .durable, .history, .groups, .access, .patterns, .statements, .floor: 200
    }
  }

  /// Seeds that failed before. Every run plays them. Add the number of each seed that fails, in the change that fixes it.
  var onceFailed: [UInt64] {
    switch self {
    case .everything: failedWithoutChanges + [1_165, 3_531, 10_353]
    case .storms: [1_156, 1_959, 2_015, 3_531, 4_002, 5_278, 5_358, 11_149, 12_062, 12_869, 16_170]
    case .durable: [1_905, 4_555, 5_159, 5_579, 6_003, 6_931, 8_637, 11_024]
    case .statements: failedWithoutChanges + [545]
    case .floor: [62, 77, 212, 267, 414, 442, 470, 596, 763, 795, 820, 874, 954, 1_035, 1_089]
    case .history: [83, 96, 108]
    case .groups, .access, .patterns: []
    }
  }

  /// Those of them that failed before these scenarios had changes of limits, and are played without any.
  var failedWithoutChanges: [UInt64] {
    switch self {
    case .everything:
      [
        1_156, 1_943, 1_959, 1_983, 2_015, 2_508, 3_216, 3_416, 3_939, 5_290, 5_768, 5_982, 8_155, 8_991,
        9_284,
        9_922, 11_201, 12_869, 13_496, 13_634, 15_597, 16_120, 17_859, 19_521, 20_167,
      ]
    case .statements:
      [10_847, 13_769, 23_293, 24_917, 24_974, 31_408, 31_493, 31_963, 38_591, 197_492_589]
    default: []
    }
  }
}

/// Selects the seeds that a test run plays.
///
/// - `SLUICE_SEED=n` plays that seed, and prints its events.
/// - `SLUICE_SEEDS=n` plays 1 to n; `SLUICE_SEEDS=m-n` plays m to n.
/// - Otherwise a run plays the seeds that failed before, and new ones up to ``Story/count``, counted from a base. The base comes from the clock and
///   is printed; `SLUICE_SEED_BASE=n` repeats the run with base n.
enum Seeds {
  /// The single seed given by `SLUICE_SEED`.
  static var single: UInt64? { variable("SLUICE_SEED").flatMap { UInt64($0) } }

  /// Whether to print every packet and turn as well: `SLUICE_TRACE=1`.
  static var isDetailed: Bool { variable("SLUICE_TRACE") != nil }

  /// The first new seed, the same for all scenarios of a run.
  static let base: UInt64 = {
    let given = variable("SLUICE_SEED_BASE").map { text in
      guard let base = UInt64(text), base <= greatestBase else {
        fatalError("SLUICE_SEED_BASE=\(text) is not a number up to \(greatestBase)")
      }
      return base
    }
    let base = given ?? drawBase(clock: UInt64(Date().timeIntervalSince1970 * 1_000_000))
    print("Stories play fresh seeds from \(base) on: SLUICE_SEED_BASE=\(base) plays the same again.")
    return base
  }()

  /// Leaves room to count up from it.
  private static let greatestBase: UInt64 = 1 << 62

  /// A base of at most nine digits, far from that of a run a moment ago.
  static func drawBase(clock: UInt64) -> UInt64 {
    var random = TestSupport.SeededRandom(seed: clock)
    return UInt64.random(in: 100_000..<1_000_000_000, using: &random)
  }

  /// The seeds of a scenario that this run plays.
  static func chosen(for story: Story) -> [UInt64] {
    if let single { return [single] }
    if let text = variable("SLUICE_SEEDS") { return Array(range(text)) }
    return mixed(story.onceFailed, base: base, count: story.count)
  }

  /// Seeds that failed before, then new ones from `base` on: `count` in all, unless more have failed.
  static func mixed(_ onceFailed: [UInt64], base: UInt64, count: Int) -> [UInt64] {
    let known = Set(onceFailed)
    let fresh = (base..<UInt64.max).lazy.filter { !known.contains($0) }
    return onceFailed + fresh.prefix(max(count - onceFailed.count, 0))
  }

  private static func range(_ text: String) -> ClosedRange<UInt64> {
    let ends = text.split(separator: "-").compactMap { UInt64($0) }
    switch ends.count {
    case 1 where ends[0] >= 1: return 1...ends[0]
    case 2 where ends[0] <= ends[1]: return ends[0]...ends[1]
    default: fatalError("SLUICE_SEEDS=\(text) is neither a number nor a range such as 1000-1999")
    }
  }

  /// The command that replays a failed seed, for its failure message.
  static func repeating(_ seed: UInt64, of suite: String) -> String {
    let again = "SLUICE_SEED=\(seed) swift test --filter \(suite) plays it again and shows all of it."
    let isFresh = single == nil && variable("SLUICE_SEEDS") == nil
    return isFresh ? "\(again) This run has SLUICE_SEED_BASE=\(base)." : again
  }

  private static func variable(_ name: String) -> String? {
    ProcessInfo.processInfo.environment[name]
  }
}
