import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import Testing

@testable import SluiceCluster

@Suite("Nodes of a cluster in a simulated world")
struct ClusterNodeTests {
  private func scene(
    _ names: [String] = ["a", "b", "c"], conditions: SimulatedConditions = .calm, seed: UInt64 = 1
  ) throws -> ClusterScene {
    let scene = ClusterScene(seed: seed, conditions: conditions)
    for name in names { try scene.start(name) }
    #expect(scene.settle(limit: .seconds(30)))
    return scene
  }

  @Test("shards are shared out as soon as the nodes are there, and every node knows the way to each")
  func start() throws {
    let scene = try scene()
    #expect(scene.allViolations == [])
    for member in scene.running {
      let status = member.node.status
      #expect(status.nodes.map(\.name) == ["a", "b", "c"])
      #expect(status.nodes.map(\.address) == ["a:7420", "b:7420", "c:7420"])
      #expect(status.nodes.reduce(0) { $0 + $1.shards } == 16)
      #expect(status.shards.allSatisfy { $0.state == .held && $0.owner == $0.target })
      #expect(status.unreadiness == nil)
      #expect(status.commitLatency! > .zero)
    }
    let topic = "orders.eu.new"
    let routes = scene.running.map { $0.node.route(of: topic) }
    #expect(
      routes.count {
        if case .local = $0 { true } else { false }
      } == 1)
  }

  @Test("a node that was started with another number of shards joins with the cluster's, and says so")
  func otherShards() throws {
    let scene = try scene(["a", "b"])
    scene.change = { $0.shards = 32 }
    let other = try scene.start("c")
    #expect(scene.settle(limit: .seconds(30)))
    #expect(Self.keptShards(other) == ["16, not 32"])
    #expect(other.node.status.shards.count == 16 && scene.allViolations == [])
    // A node without a configured number of shards, or with the cluster's number, reports nothing.
    for (name, shards) in [("d", ClusterOptions.standardShards), ("e", 16)] {
      scene.change = { $0.shards = shards }
      let quiet = try scene.start(name)
      #expect(scene.settle(limit: .seconds(30)))
      #expect(Self.keptShards(quiet) == [])
    }
  }

  private static func keptShards(_ member: ModelMember) -> [String] {
    member.events.compactMap { event in
      guard case .shardsKept(let count, let wanted) = event else { return nil }
      return "\(count), not \(wanted)"
    }
  }

  @Test("nodes that start at once want the same shards, and each learns which of them has a shard")
  func startAtOnce() throws {
    for seed: UInt64 in 1...60 {
      let scene = ClusterScene(seed: seed)
      for name in ["a", "b", "c"] { try scene.start(name) }
      #expect(scene.settle(limit: .seconds(20)), "seed \(seed): \(scene.summary)")
      #expect(scene.allViolations == [])
    }
  }

  @Test("a killed node's shards are taken over within 3 seconds, with the cause")
  func death() throws {
    let scene = try scene()
    let lost = scene.member("a")!.node.status.nodes.first { $0.name == "a" }!.shards
    #expect(lost > 0)
    let before = scene.takeOvers.count
    scene.member("a")!.crash()
    #expect(scene.settle(limit: .seconds(3)))
    let takeOvers = scene.takeOvers.dropFirst(before)
    #expect(takeOvers.count == lost)
    for takeOver in takeOvers {
      #expect(takeOver.cause == .died("a"))
      #expect(takeOver.duration > .seconds(1) && takeOver.duration < .seconds(3))
    }
    #expect(scene.allViolations == [])
    let state = scene.running[0].node.status.nodes.first { $0.name == "a" }!.state
    #expect(state == .ended)
  }

  @Test("a node that comes gets its share in order, a few shards at a time, each within 300 ms")
  func arrival() throws {
    let scene = try scene()
    let before = scene.takeOvers.count
    try scene.start("d")
    #expect(scene.settle(limit: .seconds(30)))
    let moved = scene.takeOvers.dropFirst(before)
    #expect(!moved.isEmpty)
    #expect(scene.oracle.gifts == moved.count)
    for takeOver in moved {
      guard case .handedOver = takeOver.cause else {
        Issue.record("\(takeOver)")
        continue
      }
      #expect(takeOver.duration < .milliseconds(300))
    }
    #expect(scene.allViolations == [])
  }

  @Test("a node that leaves gives everything away first, and one that is alone closes everything")
  func leaving() throws {
    let scene = try scene()
    for name in ["a", "b", "c"] {
      let before = scene.takeOvers.count
      let member = scene.member(name)!
      let owned = member.node.status.nodes.first { $0.name == name }!.shards
      member.perform { $0.leave() }
      #expect(
        scene.world.run(limit: .seconds(10)) {
          member.events.contains { if case .left = $0 { true } else { false } }
        })
      #expect(!member.events.contains { if case .lost = $0 { true } else { false } })
      member.perform { $0.close() }
      member.crash()
      guard name != "c" else { continue }
      #expect(scene.settle(limit: .seconds(2)))
      #expect(scene.takeOvers.count == before + owned)
    }
    // The name may be reused immediately.
    let began = scene.world.now
    try scene.start("a")
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.world.now - began < .seconds(1))
    #expect(scene.allViolations == [])
  }

  /// In some of the runs the node's watch uses that server, and continues then.
  @Test("a node goes to another server of the engine when its own has lost the others", arguments: 1...9)
  func isolation(seed: UInt64) throws {
    let scene = try scene(seed: seed)
    let member = scene.member("a")!
    let server = Int(member.node.client.serverInfo!.serverName.dropFirst())! - 1
    let began = scene.world.now
    scene.engine.isolate(server)
    #expect(
      scene.world.run(limit: .seconds(10)) { !member.node.status.isMember || member.node.status.isSuspended })
    #expect(
      scene.world.run(limit: .seconds(60)) { scene.isSettled && member.node.status.unreadiness == nil },
      "\(scene.summary)")
    #expect(scene.world.now - began > member.node.options.times.patience)
    #expect(scene.engine.servers[server].name != member.node.client.serverInfo!.serverName)
    #expect(scene.allViolations == [])
  }

  @Test("a node that doesn't get the processor is replaced, and joins as an ordinary node when it goes on")
  func pause() throws {
    let scene = try scene()
    let member = scene.member("a")!
    member.loop.stall(for: .seconds(60))
    scene.world.run(for: .seconds(30))
    #expect(member.beliefs(at: scene.world.now) == [:])
    #expect(scene.settle(limit: .seconds(60)))
    #expect(member.events.contains { if case .expelled = $0 { true } else { false } })
    #expect(scene.allViolations == [])
  }

  @Test("a node that is cut from the engine stops by its own clock before another one takes over")
  func cut() throws {
    let scene = try scene()
    let member = scene.member("a")!
    let owned = member.beliefs(at: scene.world.now).keys
    for way in scene.ways(of: "a") { scene.world.network.cut(.host(way.host, port: way.port)) }
    #expect(
      scene.world.run(limit: .seconds(10)) {
        member.events.contains { if case .suspended = $0 { true } else { false } }
      })
    let other = scene.member("b")!.node.control
    #expect(owned.allSatisfy { other.directory.owner(of: $0)?.owner == "a" })
    scene.world.run(for: .seconds(5))
    #expect(member.node.status.unreadiness != nil)
    for way in scene.ways(of: "a") { scene.world.network.heal(.host(way.host, port: way.port)) }
    #expect(scene.settle(limit: .seconds(60)))
    #expect(scene.allViolations == [])
  }

  @Test("while the engine can't store, no node loses a shard, and all go on with the same terms")
  func engineOutage() throws {
    let scene = try scene()
    let terms = scene.running.map { $0.beliefs(at: scene.world.now) }
    for index in 0..<2 { scene.engine.crash(index) }
    scene.world.run(for: .seconds(60))
    for member in scene.running { #expect(member.node.status.isSuspended) }
    for index in 0..<2 { scene.engine.restart(index) }
    #expect(
      scene.world.run(limit: .seconds(60)) { scene.running.allSatisfy { $0.node.isLeaseValid } })
    #expect(scene.settle(limit: .seconds(10)))
    scene.world.run(for: .seconds(10))
    #expect(scene.running.map { $0.beliefs(at: scene.world.now) } == terms)
    #expect(scene.running.allSatisfy { $0.events.contains { if case .resumed = $0 { true } else { false } } })
    #expect(scene.allViolations == [])
  }

  @Test("clocks that jump by an hour move nothing")
  func clocks() throws {
    let scene = try scene()
    let before = scene.takeOvers.count
    for hours in [1, -2, 5] {
      scene.engine.clockOffset += .seconds(hours * 3_600 + 60)
      scene.world.wallClock += Int64(hours) * 3_600_000
      scene.world.run(for: .seconds(20))
    }
    #expect(scene.isSettled)
    #expect(scene.takeOvers.count == before)
    #expect(
      !scene.running.contains { $0.events.contains { if case .suspended = $0 { true } else { false } } })
    #expect(scene.allViolations == [])
  }

  @Test("a drained node has no shards until it may have them again; a pinned shard goes where it is wanted")
  func wishes() throws {
    let scene = try scene()
    func wish(_ body: (ClusterNode) throws -> Void) rethrows {
      try scene.running[0].loop.perform { try body(scene.running[0].node) }
    }
    try wish { try $0.drain("b") { #expect($0 == nil) } }
    scene.world.run(for: .seconds(1))
    #expect(scene.settle(limit: .seconds(10)))
    let status = scene.running[0].node.status.nodes[1]
    #expect((status.state, status.shards) == (.drained, 0))
    try wish { try $0.drain("b", false) { #expect($0 == nil) } }
    scene.world.run(for: .seconds(1))
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.running[0].node.status.nodes[1].shards > 0)
    let owner = scene.running[0].node.status.shards[3].owner!
    let other = ["a", "b", "c"].first { $0 != owner }!
    try wish { try $0.pin(3, to: other) { #expect($0 == nil) } }
    scene.world.run(for: .seconds(1))
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.running[0].node.status.shards[3].owner == other)
    #expect(scene.running[0].node.status.shards[3].pin == other)
    try wish { try $0.pin(3, to: nil) { #expect($0 == nil) } }
    scene.world.run(for: .seconds(1))
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.running[0].node.status.shards[3].owner == owner)
    #expect(scene.allViolations == [])
  }

  @Test("a second process of a name waits for as long as the first one lives")
  func sameName() throws {
    let scene = try scene(["a", "b"])
    let first = scene.member("a")!
    let second = try scene.start("a")
    scene.world.run(for: .seconds(20))
    #expect(second.node.control.session.session == nil)
    #expect(first.node.isLeaseValid)
    first.crash()
    #expect(scene.world.run(limit: .seconds(5)) { second.node.isLeaseValid })
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.allViolations == [])
  }

  @Test("an engine that would lose data or can't be asked is refused, unless the node is told to use it")
  func unsafeEngine() throws {
    for canAsk in [true, false] {
      let scene = ClusterScene(seed: 1, conditions: .calm)
      scene.engine.syncsAlways = false
      scene.engine.tellsSettings = canAsk
      let member = try scene.start("a")
      #expect(
        scene.world.run(limit: .seconds(30)) {
          member.events.contains { if case .refused = $0 { true } else { false } }
        })
      scene.world.run(for: .seconds(30))
      #expect(member.node.control.session.session == nil)
      #expect(member.node.status.unreadiness?.contains(canAsk ? "sync_interval" : "export") == true)
      scene.change = { $0.engineUnsafe = true }
      try scene.start("b")
      #expect(scene.world.run(limit: .seconds(30)) { scene.member("b")!.node.isLeaseValid })
      #expect(scene.member("b")!.node.status.isEngineUnsafe)
    }
  }

  @Test("a cluster keeps its number of shards")
  func shardCount() throws {
    let scene = try scene(["a"])
    scene.change = { $0.shards = 99 }
    try scene.start("b")
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.member("b")!.node.status.shards.count == 16)
  }

  @Test("a shard that can't be opened is given back, and tried again")
  func refusedShard() throws {
    let scene = try scene(["a"])
    let member = scene.member("a")!
    let term = member.node.control.leases[0]!.term!
    member.perform { $0.closed(0, term: term) }
    #expect(scene.world.run(limit: .seconds(5)) { member.node.control.leases[0]?.term == nil })
    #expect(scene.settle(limit: .seconds(5)))
    #expect(member.node.control.leases[0]!.term! > term)
  }

  @Test("settings that can't be are refused")
  func options() throws {
    let world = SimulatedWorld(seed: 1)
    for (name, address, shards) in [
      ("", "a:1", 8), ("a.b", "a:1", 8), ("a", "", 8), ("a", "a b", 8), ("a", "a:1", 0),
    ] {
      var options = ClusterOptions(name: name, advertisedAddress: address, engine: [NATSAddress("n")])
      options.shards = shards
      #expect(throws: ClusterError.self) {
        try ClusterNode(options, network: world.network, on: world.loops[0])
      }
    }
  }
}
