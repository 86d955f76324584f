import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker in a calm simulated world, scripted peers, and the broker's snapshots.
final class SnapshotSetting {
  static let address = SocketAddress.host("broker", port: 7420)

  let world: SimulatedWorld
  let brokerLoops: [SimulatedLoop]
  let broker: Broker

  init(loops: Int = 1, _ change: (inout BrokerConfiguration) -> Void = { _ in }) throws {
    world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
    brokerLoops = (0..<loops).map { [world] _ in world.makeLoop() }
    var configuration = BrokerConfiguration()
    configuration.listen = [Self.address]
    configuration.identity = 1
    configuration.limits.keepalive = 0
    change(&configuration)
    broker = try Broker(configuration, network: world.network, group: LoopGroup(brokerLoops))
    try broker.start()
  }

  /// A peer that has received WELCOME.
  func peer(_ name: String) throws -> ScenePeer {
    let peer = ScenePeer(world, Self.address)
    peer.send(Hello(maximumFrame: 1 << 20, keepalive: 0, name: name).encoded(stream: 0))
    try wait(for: "welcome") { peer.isWelcome }
    return peer
  }

  /// A peer with a publication on stream 1.
  func publisher(
    _ topic: String, acknowledgement: PublishOpen.Acknowledgement = .received
  ) throws -> ScenePeer {
    let peer = try peer("publisher")
    peer.send(PublishOpen(topic: topic, acknowledgement: acknowledgement).encoded(stream: 1))
    try wait(for: "the publication") { peer.granted[1] != nil }
    return peer
  }

  /// A peer with a subscription on stream 1.
  func subscriber(_ topic: String, granted: UInt64, from start: Subscribe.Start = .earliest) throws
    -> ScenePeer
  {
    let peer = try peer("subscriber")
    peer.send(Subscribe(topic: topic, start: start, grantedThrough: granted).encoded(stream: 1))
    try wait(for: "the subscription") { peer.records[1] != nil }
    return peer
  }

  /// Publishes records of these sizes in bytes, in one batch.
  func publish(_ sizes: [Int], from sequence: UInt64, by peer: ScenePeer) {
    peer.send(SessionProbe.publishFrame(SessionProbe.batch(sizes), from: sequence, stream: 1))
    run()
  }

  func run(for time: Duration = .milliseconds(1)) {
    world.run(for: time)
    check()
  }

  func wait(for what: String, _ condition: () -> Bool) throws {
    guard world.run(limit: .seconds(20), until: condition) else {
      throw ProbeViolation("never came: \(what)")
    }
    check()
  }

  /// Checks the invariants that hold after every step.
  private func check() {
    for topic in broker.core.registry.all {
      if let violation = topic.grantViolation { Issue.record("\(topic.name) \(violation)") }
    }
  }

  func snapshot(_ request: SnapshotRequest = SnapshotRequest()) throws -> BrokerSnapshot {
    let found = Shared<BrokerSnapshot?>(nil)
    broker.snapshot(request) { gathered in found.update { $0 = gathered.assembled() } }
    try wait(for: "a snapshot") { found.value != nil }
    return found.value!
  }

  func topic(_ name: String) throws -> TopicSnapshot {
    let snapshot = try snapshot(SnapshotRequest(topic: name))
    guard let topic = snapshot.topics.first else { throw ProbeViolation("\(name) isn't shown") }
    return topic
  }
}
