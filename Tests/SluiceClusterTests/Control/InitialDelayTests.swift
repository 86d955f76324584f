import SluiceEngineModel
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceCluster

/// When a node that has just joined takes its first shards.
@Suite("The first moments of a node")
struct InitialDelayTests {
  /// Longer than every other wait of a scene.
  private static let long = Duration.seconds(600)

  @Test("nodes that start together take no shard that belongs to another one of them")
  func together() {
    for (nodes, shards) in [(2, 64), (10, 320)] {
      let scale = ControlScale(shards: shards)
      for node in 0..<nodes { scale.start(node) }
      #expect(scale.run(limit: .seconds(60)) { scale.isSettled })
      #expect(scale.stored["shard"] == shards)
      #expect(scale.takeOvers.count == shards)
      for takeOver in scale.takeOvers { #expect(takeOver.cause == .first) }
    }
  }

  @Test("a node that starts alone has all shards as soon as the delay is over")
  func alone() {
    let scale = ControlScale(shards: 64)
    let began = scale.now
    scale.start(0)
    #expect(scale.run(limit: .seconds(60)) { scale.isSettled })
    let took = scale.now - began
    #expect(took >= LeaseTimes().initialDelay && took < LeaseTimes().initialDelay + .milliseconds(500))
  }

  @Test("without a delay the first node takes everything at once")
  func zero() throws {
    let scene = ClusterScene(seed: 1, conditions: .calm)
    scene.change = { $0.times.initialDelay = .zero }
    let member = try scene.start("a")
    #expect(
      scene.world.run(limit: .seconds(10)) {
        member.events.contains { if case .joined = $0 { true } else { false } }
      })
    let joined = scene.world.now
    #expect(scene.settle(limit: .seconds(10)))
    #expect(scene.world.now - joined < .milliseconds(200))
  }

  @Test("shards of a dead node don't wait for a node that has just joined")
  func death() throws {
    let scene = ClusterScene(seed: 1, conditions: .calm)
    let first = try scene.start("a")
    #expect(scene.settle(limit: .seconds(30)))
    scene.change = { $0.times.initialDelay = Self.long }
    first.crash()
    try scene.start("b")
    #expect(scene.settle(limit: .seconds(3)))
    #expect(scene.takeOvers.count { $0.cause == .died("a") } == scene.shards)
    #expect(scene.allViolations == [])
  }

  @Test("a node that was killed has its shards again without a delay")
  func restart() throws {
    let scene = ClusterScene(seed: 1, conditions: .calm)
    let first = try scene.start("a")
    #expect(scene.settle(limit: .seconds(30)))
    scene.change = { $0.times.initialDelay = Self.long }
    first.crash()
    try scene.start("a")
    #expect(scene.settle(limit: .seconds(3)))
    #expect(scene.allViolations == [])
  }

  @Test("shards that are handed over don't wait for the node that has just joined")
  func handOver() throws {
    let scene = ClusterScene(seed: 1, conditions: .calm)
    try scene.start("a")
    #expect(scene.settle(limit: .seconds(30)))
    scene.change = { $0.times.initialDelay = Self.long }
    try scene.start("b")
    #expect(scene.settle(limit: .seconds(10)))
    for takeOver in scene.takeOvers.suffix(from: scene.shards) {
      #expect(takeOver.cause == .handedOver(from: "a"))
      #expect(takeOver.duration < .milliseconds(200))
    }
    #expect(scene.takeOvers.count > scene.shards)
    #expect(scene.allViolations == [])
  }
}
