import Glibc
import SluiceNATS
import TestSupport
import Testing

@testable import SluiceCluster

/// Nodes with real sockets on the engine that `scripts/cluster.sh` starts.
@Suite(
  "Nodes on real nats-servers",
  .enabled(if: ClusterScript.hasEngine, "nats-server isn't installed: scripts/nats-server.sh installs it"),
  .serialized)
struct RealClusterTests {
  /// Whether all nodes report that each shard is at its target.
  private func isSettled(_ members: [RealMember]) -> Bool {
    members.allSatisfy { member in
      guard let status = member.status else { return false }
      return status.unreadiness == nil && status.shards.count == 64
        && status.nodes.filter { $0.state == .live }.map(\.name) == members.map(\.name)
        && status.shards.allSatisfy { $0.state == .held && $0.owner == $0.target }
    }
  }

  /// Waits until `members` are settled; on timeout, reports the state of each.
  private func settle(_ members: [RealMember], _ what: String) throws {
    try eventually("\(what): \(members.map(\.summary).joined(separator: "; "))") { isSettled(members) }
  }

  private func start() throws -> (ClusterScript, [ClusterScript.Engine], (String) throws -> RealMember) {
    let script = try ClusterScript()
    let engines = try script.run("up").engines
    #expect(engines.map(\.name) == ["n1", "n2", "n3"])
    let addresses = try engines.map { try NATSAddress(parsing: $0.address) }
    let password = try script.password
    return (script, engines, { try RealMember($0, engine: addresses, password: password) })
  }

  @Test("nodes share 64 shards, take over from one that is gone, and hand over to one that comes")
  func takeOver() throws {
    let (script, _, start) = try start()
    defer { withExtendedLifetime(script) {} }
    var members = try ["a", "b", "c"].map(start)
    try settle(members, "64 shards on three nodes")
    let gone = members.removeFirst()
    let lost = gone.status!.nodes[0].shards
    let before = members.map(\.takeOvers.count)
    gone.stop()
    try settle(members, "take-over")
    let taken = zip(members, before).flatMap { $0.takeOvers.dropFirst($1) }
    #expect(taken.count == lost)
    #expect(taken.allSatisfy { $0.cause == .died("a") })
    report("take-over", taken)
    let back = try start("a")
    members.insert(back, at: 0)
    try settle(members, "hand-over")
    #expect(back.takeOvers.count == lost)
    #expect(
      back.takeOvers.allSatisfy { if case .handedOver = $0.cause { true } else { false } })
    report("hand-over", back.takeOvers)
  }

  private func report(_ what: String, _ takeOvers: [TakeOver]) {
    let times = takeOvers.map {
      $0.duration.components.attoseconds / 1_000_000_000_000_000 + $0.duration.components.seconds * 1_000
    }
    .sorted()
    guard !times.isEmpty else { return }
    print("\(what) of \(times.count) shards: median \(times[times.count / 2]) ms, longest \(times.last!) ms")
  }

  @Test(
    "when the engine server is killed that leads the directory, the same nodes have the same shards afterwards"
  )
  func leaderKilled() throws {
    let (script, engines, start) = try start()
    let members = try ["a", "b", "c"].map(start)
    try settle(members, "64 shards on three nodes")
    let terms = members[0].status!.shards.map(\.term)
    let leader = try #require(try leader(of: members[0]))
    let engine = try #require(engines.first { $0.name == leader })
    kill(engine.process, SIGKILL)
    try eventually("the end of \(leader)") { try script.run("status").engines.count == 2 }
    try eventually("another leader", every: 0.1) {
      try self.leader(of: members[0]).map { $0 != leader } ?? false
    }
    try settle(members, "leases are renewed again")
    // All of them had to wait, so none may treat another one's silence as its end.
    #expect(members[0].status!.shards.map(\.term) == terms)
    #expect(!members.contains { $0.events.contains { if case .expelled = $0 { true } else { false } } })
    // The killed server is restarted.
    #expect(try script.run("up").engines.map(\.name) == ["n1", "n2", "n3"])
    #expect(try script.run("status").isSuccess)
    _ = try script.run("down")
    let after = try script.run("status")
    #expect(after.engines == [])
    #expect(!after.isSuccess)
    try eventually("nodes notice") { members.allSatisfy { $0.status?.unreadiness != nil } }
  }

  private func leader(of member: RealMember) throws -> String? {
    let box = LeaderBox()
    member.perform { node in
      do {
        try JetStream(node.client).streamInfo(ControlRecord.stream) { result in
          box.leader = (try? result.get())?.cluster?.leader
          box.isDone.raise()
        }
      } catch {
        // Not connected: its server was killed.
        box.isDone.raise()
      }
    }
    try eventually("the leader's name") { box.isDone.isRaised }
    return box.leader
  }
}

/// Unchecked: written before the flag is raised, read afterwards.
private final class LeaderBox: @unchecked Sendable {
  var leader: String?
  let isDone = Flag()
}
