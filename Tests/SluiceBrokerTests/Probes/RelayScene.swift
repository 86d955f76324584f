import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker with topics at another node, which sends frames made from the input. A client gets no frame that violates the protocol, and the broker's own
/// topic keeps working.
final class RelayScene {
  private static let address = SocketAddress.host("broker", port: 7420)
  private static let ownerAddress = SocketAddress.host("owner", port: 7420)
  private static let shards = 64
  private static let ownTopic = "good"

  private let world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
  private let broker: Broker
  private let owner: OwnerPeer
  private var client: ScenePeer
  private let good: ScenePeer
  private var published = 0

  static func play(_ input: ProbeInput) throws {
    let scene = try RelayScene()
    var frames = ProbeFrames(input)
    frames.topics = ["r.a", "r.b"]
    frames.readTopics = frames.topics
    try scene.begin()
    while !frames.input.isEmpty { try scene.step(&frames) }
    try scene.end()
  }

  private init() throws {
    var configuration = BrokerConfiguration()
    configuration.listen = [Self.address]
    configuration.identity = 1
    configuration.limits.keepalive = 0
    configuration.limits.streams = 8
    configuration.limits.routeWait = .milliseconds(300)
    owner = try OwnerPeer(world, Self.ownerAddress)
    let routes = ShardRoutes()
    let node = RemoteNode(name: "owner", address: "owner:7420")
    let own = ShardHash.shard(of: Self.ownTopic, of: Self.shards)
    routes.update(
      shardCount: Self.shards, nodes: [node],
      Dictionary(
        uniqueKeysWithValues: (0..<Self.shards).map {
          (ShardID(rawValue: UInt32($0)), $0 == own ? .local : .remote(node))
        }))
    // The node owns its shard, with a lease that never expires.
    routes.lease.set(end: MonotonicTime(nanoseconds: .max))
    broker = try Broker(
      configuration, network: world.network,
      loops: BrokerLoops(serving: LoopGroup([world.makeLoop(), world.makeLoop()])), routes: routes)
    _ = broker.core.registry.open(ShardID(rawValue: UInt32(own)))
    try broker.start()
    client = ScenePeer(world, Self.address)
    good = ScenePeer(world, Self.address)
  }

  private static let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "good").encoded(stream: 0)

  private func begin() throws {
    for peer in [client, good] { peer.send(Self.hello) }
    good.send(PublishOpen(topic: Self.ownTopic, acknowledgement: .none).encoded(stream: 1))
    good.send(
      Subscribe(topic: Self.ownTopic, start: .earliest, grantedThrough: Credit.unlimited).encoded(stream: 2))
    try wait(for: "the good one begins") { good.granted[1] ?? 0 > 0 && good.records[2] != nil }
  }

  private func step(_ frames: inout ProbeFrames) throws {
    let what = frames.input.byte()
    switch what {
    case 0..<0x60: client.send(frames.fromClient())
    case 0x60..<0xE0: send(&frames)
    case 0xE0: owner.send(frames.input.bytes(Int(frames.input.byte())))
    case 0xE1: owner.reset()
    case 0xE2:
      client.leave(abruptly: frames.input.bool())
      client = ScenePeer(world, Self.address)
      client.send(Self.hello)
      frames.startOver()
    case 0xE3, 0xE4: client.pauseReading(what == 0xE3)
    case 0xE5: try publish()
    default: world.run(for: .milliseconds(Int64(frames.input.byte())))
    }
    if what & 1 != 0 { world.run(for: .milliseconds(1)) }
    if let violation = client.violation ?? good.violation { throw violation }
  }

  /// Sends a frame of the owner. The relay checks only a batch's header while it forwards it.
  private func send(_ frames: inout ProbeFrames) {
    var frame = frames.fromBroker()
    let isShareable = frames.input.bool()
    let isSound = frame.withUnsafeBytes { bytes -> Bool in
      guard bytes.count >= FrameHeader.size, FrameHeader(at: bytes.baseAddress!).type == .deliver,
        let (header, batch) = try? DeliverHeader.decode(
          UnsafeRawBufferPointer(rebasing: bytes[FrameHeader.size...]))
      else { return true }
      var iterator = BatchIterator(batch, count: header.count, time: 0)
      do {
        while let record = try iterator.next() {
          if record.isAttributed { _ = try RecordAttributes(record.body) }
        }
      } catch {
        return false
      }
      return true
    }
    guard isSound else { return }
    if frame.count == 40, frame[4] == FrameType.subscribed.rawValue, isShareable { frame[38] = 1 }
    owner.send(frame)
  }

  private func publish() throws {
    let batch = SessionProbe.batch([published % 7])
    good.send(SessionProbe.publishFrame(batch, from: UInt64(published), stream: 1))
    published += 1
  }

  private func end() throws {
    client.pauseReading(false)
    for _ in 0..<3 { try publish() }
    try wait(for: "the good records have come") { good.records[2]?.count == published }
    client.leave()
    try wait(for: "the client's streams are gone") { broker.contexts.flatMap(\.connections).count == 1 }
    if let violation = client.violation ?? good.violation { throw violation }
    guard broker.core.metrics[.subscriptions] == 1, broker.core.metrics[.publications] == 1 else {
      throw ProbeViolation("streams of a closed connection are still counted")
    }
    good.leave()
    let isStopped = Flag()
    broker.whenStopped { isStopped.raise() }
    broker.stop()
    try wait(for: "the broker stops") { isStopped.isRaised }
  }

  private func wait(for what: String, _ condition: () -> Bool) throws {
    guard world.run(limit: .seconds(20), until: condition) else { throw ProbeViolation("not \(what)") }
  }
}

/// The other node: it answers each link's handshake, and sends its frames on the last link.
// @unchecked: used only on the world's thread.
private final class OwnerPeer: @unchecked Sendable {
  private let loop: SimulatedLoop
  private var link: OwnerLink?

  init(_ world: SimulatedWorld, _ address: SocketAddress) throws {
    loop = world.makeLoop(name: "owner")
    _ = try world.network.listen(at: address, group: LoopGroup([loop])) { [unowned self] stream, _ in
      let link = OwnerLink(stream)
      self.link = link
      stream.start(link)
      link.send(
        Welcome(
          maximumFrame: 1 << 20, maximumRecord: 1 << 16, maximumStreams: 4, keepalive: 0, broker: 2,
          software: "owner"
        ).encoded(stream: 0))
    }
  }

  func send(_ bytes: [UInt8]) { loop.perform { link?.send(bytes) } }

  func reset() { loop.perform { link.take()?.abort() } }
}

/// A link from the broker. It reads what comes, also when there is a later link.
// @unchecked: used only on the world's thread.
private final class OwnerLink: ByteStreamHandler, @unchecked Sendable {
  private var stream: (any ByteStream)?
  private var outbox: [UInt8] = []
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)

  init(_ stream: any ByteStream) {
    self.stream = stream
  }

  deinit { buffer.deallocate() }

  func send(_ bytes: [UInt8]) {
    guard stream != nil else { return }
    outbox += bytes
    streamWritable()
  }

  func abort() { stream.take()?.abort() }

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeBytes { stream.write($0) }
    if case .wrote(let count) = result { outbox.removeFirst(count) }
  }

  func streamReadable() {
    guard let stream else { return }
    switch stream.read(into: buffer) {
    case .bytes, .wouldBlock: break
    case .end, .failed: self.stream.take()?.close()
    }
  }

  func streamFailed(_ error: IOError) { stream = nil }
}
