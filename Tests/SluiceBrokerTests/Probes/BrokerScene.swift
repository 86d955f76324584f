import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker in a simulated world: three clients act on the input, and two behave well. The latter must get all their records; the former must leave
/// nothing behind.
final class BrokerScene {
  private static let address = SocketAddress.host("broker", port: 7420)
  private static let topic = "good"

  private let world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
  private let broker: Broker
  private var peers: [ScenePeer] = []
  private let publisher: ScenePeer
  private let subscriber: ScenePeer
  private var published = 0

  static func play(_ input: ProbeInput) throws {
    let scene = try BrokerScene()
    try scene.begin()
    var frames = ProbeFrames(input)
    while !frames.input.isEmpty { try scene.step(&frames) }
    try scene.end()
  }

  private init() throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [Self.address]
    configuration.identity = 1
    configuration.drainTime = .seconds(1)
    configuration.topicRules = [
      TopicRule(pattern: try TopicPattern("d.*"), settings: Self.settings { $0.storage = .durable }),
      TopicRule(pattern: try TopicPattern("k.*"), settings: Self.settings { $0.compact = true }),
    ]
    Self.limit(&configuration.limits)
    let (network, loops) = (world.network, LoopGroup([world.makeLoop()]))
    broker = try Broker(
      configuration, network: network, group: loops, storage: StoreConfiguration(MemoryStore()),
      storageGroup: LoopGroup([world.makeLoop(), world.makeLoop()]))
    try broker.start()
    publisher = ScenePeer(world, Self.address)
    subscriber = ScenePeer(world, Self.address)
  }

  private static func settings(_ change: (inout TopicSettings) -> Void) -> TopicSettings {
    var settings = TopicSettings()
    change(&settings)
    return settings
  }

  /// Sets low limits, so that they are reached.
  private static func limit(_ limits: inout BrokerLimits) {
    limits.connections = 6
    limits.record = 1_000
    limits.frame = Limits.smallestFrame
    limits.streams = 8
    limits.topics = 12
    limits.patterns = 4
    limits.patternsPerConnection = 2
    limits.matches = 8
    limits.producers = 3
    limits.producerWindow = 16
    limits.cursors = 3
    limits.groupRecords = 8
    limits.keepalive = 0
    limits.handshake = .milliseconds(500)
    limits.autoDeleteTime = .seconds(1)
    limits.writeBatch = 4_096
    limits.answers = 4_096
    limits.topicBacklog = 4_096
    limits.storageBacklog = 8_192
  }

  // MARK: The story

  private static func hello() -> [UInt8] {
    Hello(maximumFrame: 1 << 20, keepalive: 0, name: "good").encoded(stream: 0)
  }

  private func begin() throws {
    for peer in [publisher, subscriber] { peer.send(Self.hello()) }
    publisher.send(PublishOpen(topic: Self.topic, acknowledgement: .received).encoded(stream: 1))
    subscriber.send(
      Subscribe(topic: Self.topic, start: .earliest, grantedThrough: Credit.unlimited).encoded(stream: 1))
    try wait(for: "the good ones begin") { subscriber.records[1] != nil && publisher.granted[1] ?? 0 > 0 }
    try publish()
  }

  private func publish() throws {
    try wait(for: "the good publisher may go on") { publisher.granted[1] ?? 0 > UInt64(published) }
    let batch = SessionProbe.batch([published % 7])
    publisher.send(SessionProbe.publishFrame(batch, from: UInt64(published), stream: 1))
    published += 1
  }

  private func step(_ frames: inout ProbeFrames) throws {
    let what = frames.input.byte()
    switch what {
    case 0xF0...0xF3: world.run(for: .milliseconds(Int64(frames.input.byte()) * 10))
    case 0xF4: try publish()
    case 0xF5, 0xF6: peer(what).pauseReading(what == 0xF5)
    case 0xF7...0xF9: replace(Int(what - 0xF7), &frames, abruptly: false)
    case 0xFA...0xFC: replace(Int(what - 0xFA), &frames, abruptly: true)
    case 0xFD: peer(frames.input.byte()).send(frames.hello().encoded(stream: 0))
    case 0xFE: peer(frames.input.byte()).send(frames.input.bytes(Int(frames.input.byte())))
    default:
      frames.client = Int(what % 3)
      peer(what).send(frames.fromClient())
      if what & 0x80 != 0 { world.run(for: .milliseconds(1)) }
    }
    try check()
  }

  private func peer(_ byte: UInt8) -> ScenePeer {
    let index = Int(byte % 3)
    while peers.count <= index { peers.append(newPeer()) }
    return peers[index]
  }

  private func newPeer() -> ScenePeer {
    let peer = ScenePeer(world, Self.address)
    peer.send(Self.hello())
    return peer
  }

  private func replace(_ index: Int, _ frames: inout ProbeFrames, abruptly: Bool) {
    guard index < peers.count else { return }
    frames.client = index
    frames.startOver()
    peers[index].leave(abruptly: abruptly)
    peers[index] = newPeer()
  }

  private func end() throws {
    for _ in 0..<3 { try publish() }
    try wait(for: "the good records have come") { subscriber.records[1]?.count == published }
    guard subscriber.records[1] == (0..<published).map({ [UInt8](repeating: 0x61, count: $0 % 7) }) else {
      throw ProbeViolation("the good subscriber has got something else")
    }
    for peer in peers { peer.leave() }
    try wait(for: "the others are gone") { connections.count == 2 }
    try check()
    for loopState in broker.core.registry.all.flatMap(\.loopStates) {
      let clients =
        loopState.subscriptions.map { $0.shown(open: nil)?.client }
        + loopState.publications.map(\.info.client)
      guard clients.allSatisfy({ $0 == "good" }) else {
        throw ProbeViolation("a stream of a closed connection is still attached")
      }
    }
    publisher.leave()
    subscriber.leave()
    let isStopped = Flag()
    broker.whenStopped { isStopped.raise() }
    broker.shutdown()
    try wait(for: "the broker stops") { isStopped.isRaised }
  }

  // MARK: What must hold

  private var connections: [Connection] { broker.contexts.flatMap(\.connections) }

  private func wait(for what: String, _ condition: () -> Bool) throws {
    guard world.run(limit: .seconds(20), until: condition) else { throw ProbeViolation("not \(what)") }
  }

  private func check() throws {
    for peer in peers + [publisher, subscriber] { if let violation = peer.violation { throw violation } }
    for connection in connections {
      let (answers, pending) = connection.waitingBytes
      guard answers + pending < 200 << 10 else { throw ProbeViolation("\(answers + pending) bytes wait") }
    }
    for topic in broker.core.registry.all {
      let attached = topic.attached
      let loopStates = topic.loopStates
      guard attached.subscriptions == loopStates.reduce(0, { $0 + $1.subscriptions.count }),
        attached.publications == loopStates.reduce(0, { $0 + $1.publications.count })
      else { throw ProbeViolation("\(topic.name) counts \(attached)") }
      if let violation = topic.grantViolation { throw ProbeViolation("\(topic.name) \(violation)") }
    }
  }
}
