import Glibc
import SluiceClient
import SluiceWire
import TestSupport
import Testing

/// A cluster whose nodes and engine lose processes, again and again, under load: nothing acknowledged is lost, doubled or out of order.
///
/// `SLUICE_CLUSTER_ROUNDS` says how many rounds; `SLUICE_CLUSTER_KINDS` which kinds of loss, with commas between them; `SLUICE_SEED` repeats a run as far
/// as chance is the test's own. Prints a line for each round and one for the whole run.
@Suite(
  .serialized, .onItsOwnThread, .enabled(if: ClusterStage.hasEngine, Comment(rawValue: ClusterStage.absence)))
struct ClusterKillTests {
  enum Kind: String, CaseIterable {
    case killNode = "kill-node"
    /// For longer than the node's lease.
    case pauseNode = "pause-node"
    case stopNode = "stop-node"
    case killEngine = "kill-engine"
    case killNodes = "kill-nodes"
    case killAll = "kill-all"
  }

  private static func number(_ name: String) -> Int? {
    getenv(name).flatMap { Int(String(cString: $0)) }
  }

  private static var rounds: Int { number("SLUICE_CLUSTER_ROUNDS") ?? 3 }

  private static var kinds: [Kind] {
    guard let text = getenv("SLUICE_CLUSTER_KINDS").map({ String(cString: $0) }) else { return Kind.allCases }
    return text.split(separator: ",").compactMap { Kind(rawValue: String($0)) }
  }

  @Test func whatWasAcknowledgedSurvivesTheLossOfNodesAndServers() async throws {
    var random = SeededRandom.printed()
    let stage = try ClusterStage()
    let load = try await ClusterLoad(stage, topics: 9, random: &random)
    try load.work(120)
    var pauses: [Kind: [Double]] = [:]
    for round in 0..<Self.rounds {
      let kind = Self.kinds[round % Self.kinds.count]
      let node = Int(random.next() % 3)
      let pause = try lose(kind, node, stage, load)
      pauses[kind, default: []].append(pause)
      print(
        "round \(round + 1): \(kind.rawValue) of number \(node + 1), all topics go on after \(Int(pause * 1000)) ms"
      )
      // Shown while it goes on, also in a file.
      fflush(nil)
      try stage.up()
      try load.work(60 + random.next() % 60)
    }
    let findings = try await load.finish()
    for kind in Kind.allCases {
      guard let all = pauses[kind]?.sorted() else { continue }
      print(
        "\(kind.rawValue): \(all.count) times, median \(Int(all[all.count / 2] * 1000)) ms, longest \(Int(all[all.count - 1] * 1000)) ms"
      )
    }
    print("\(Self.rounds) rounds: \(findings)")
    #expect(findings.lost == 0 && findings.doubled == 0 && findings.disordered == 0 && findings.withheld == 0)
    for client in load.clients { client.close() }
  }

  /// Takes processes away. Returns the seconds until all topics have gone on.
  private func lose(
    _ kind: Kind, _ node: Int, _ stage: ClusterStage, _ load: ClusterLoad
  ) throws -> Double {
    let start = ContinuousClock.now
    switch kind {
    case .killNode:
      stage.nodes[node].signal(SIGKILL)
      try load.awaitProgress()
    case .stopNode:
      let name = stage.nodes[node].name
      let stops = stage.stops(of: name)
      stage.nodes[node].signal(SIGTERM)
      try load.awaitProgress()
      let taken = seconds(since: start)
      // It may still disconnect its clients.
      try eventually("\(name) has ended\(stage.logs)") { stage.stops(of: name) > stops }
      return taken
    case .pauseNode:
      stage.nodes[node].signal(SIGSTOP)
      let result = Result { try load.awaitProgress() }
      let taken = seconds(since: start)
      // The others have its shards by now: it wakes up as a stale owner.
      while seconds(since: start) < 3 { pause(0.01) }
      stage.nodes[node].signal(SIGCONT)
      try result.get()
      return taken
    case .killEngine:
      stage.engines[node].signal(SIGKILL)
      try load.awaitProgress()
    case .killNodes:
      for node in stage.nodes { node.signal(SIGKILL) }
      try stage.up()
      try load.awaitProgress()
    case .killAll:
      for member in stage.nodes + stage.engines { member.signal(SIGKILL) }
      try stage.up()
      try load.awaitProgress()
    }
    return seconds(since: start)
  }

  private func seconds(since start: ContinuousClock.Instant) -> Double {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
