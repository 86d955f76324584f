import SluiceIO
import SluiceSimulation
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker whose disk outlives it, one topic, and clients that exchange protocol frames. Only the order of simultaneous events is random.
final class FloorWorld {
  let world: SimulatedWorld
  private let host: DurableHost
  private let clients: SimulatedLoop
  private var admin: ScriptedClient!
  private var producer: ScriptedClient!
  private(set) var head: UInt64 = 0

  static let topic = "t"

  init(seed: UInt64 = 1, brokerLoops: Int = 1) throws {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: .calm)
    host = DurableHost(world, DurableDisk(seed: seed), brokerLoops: brokerLoops, storageLoops: 2) {
      $0.drainTime = .milliseconds(100)
    }
    clients = world.makeLoop(name: "clients")
    try start()
  }

  // MARK: The broker

  var broker: Broker { host.broker }

  private func start() throws {
    try host.start()
    admin = connect()
    producer = nil
  }

  /// Stops the broker, in order or by a kill, and starts another one on its disk after `pause`.
  func restart(inOrder: Bool = true, after pause: Duration = .zero) throws {
    if inOrder {
      _ = host.stop()
    } else {
      host.kill()
    }
    world.run(for: pause)
    try start()
  }

  func leave() {
    broker.stop()
    world.run(for: .seconds(1))
  }

  func settle(_ time: Duration = .milliseconds(100)) { world.run(for: time) }

  // MARK: Clients

  func connect() -> ScriptedClient {
    let client = ScriptedClient.connected(to: DurableHost.address, in: world, on: clients)
    client.send(Hello(maximumFrame: 1 << 20, keepalive: 60_000, name: "test"), stream: 0)
    settle(.milliseconds(20))
    return client
  }

  /// Sends a request. Returns its reply.
  @discardableResult
  func ask<Answer: Frame>(_ frame: some Frame, as answer: Answer.Type = TopicInfo.self) throws -> Answer {
    admin.forget()
    admin.send(frame, stream: 9)
    settle(.milliseconds(40))
    guard let last = admin.frames(on: 9).last else { throw Silence(about: "\(frame)") }
    return try last.decoded(Answer.self)
  }

  /// A request had no reply.
  struct Silence: Error {
    var about: String
  }

  func create(_ settings: TopicSettings) throws {
    try ask(TopicCreate(topic: Self.topic, settings: settings))
  }

  func set(_ change: (inout TopicSettings) -> Void) throws {
    var settings = TopicSettings()
    change(&settings)
    try ask(TopicSet(topic: Self.topic, settings: settings))
  }

  @discardableResult
  func trim(_ limit: TopicTrim.Limit) throws -> TopicInfo { try ask(TopicTrim(topic: Self.topic, limit)) }

  func cursors() throws -> [CursorInfo] {
    try ask(CursorList(topic: Self.topic, limit: 100), as: Cursors.self).cursors
  }

  func info() throws -> TopicInfo { try ask(TopicShow(topic: Self.topic)) }

  // MARK: Records

  private var isPublishing: Bool { producer != nil }
  private var sequence: UInt64 = 0

  /// Publishes a batch. Each record's payload is its offset, padded to `size` bytes; `keys` are the keys of the first records.
  func publish(_ count: Int, keys: [String?] = [], size: Int = 0) {
    var batch = BatchBuilder()
    for number in 0..<count {
      var payload = Array("\(head + UInt64(number))".utf8)
      while payload.count < size { payload.append(UInt8(ascii: " ")) }
      payload.withUnsafeBytes { payload in
        guard number < keys.count, let key = keys[number] else { return batch.append(payload) }
        Array(key.utf8).withUnsafeBytes { try? batch.append(key: $0, headers: [], payload: payload) }
      }
    }
    publish(batch, count)
  }

  func publish(_ batch: BatchBuilder, _ count: Int) {
    if producer == nil {
      producer = connect()
      sequence = 0
      producer.send(PublishOpen(topic: Self.topic, acknowledgement: .received), stream: 1)
      settle(.milliseconds(20))
    }
    producer.publish(batch, from: sequence, stream: 1)
    sequence += UInt64(count)
    head += UInt64(count)
    settle(.milliseconds(40))
  }
}

/// A client with one subscription, on stream 1.
final class FloorReader {
  let client: ScriptedClient
  private let world: FloorWorld

  init(_ world: FloorWorld, _ frame: Subscribe) {
    self.world = world
    client = world.connect()
    client.send(frame, stream: 1)
    world.settle(.milliseconds(60))
  }

  init(_ world: FloorWorld, joining frame: JoinGroup) {
    self.world = world
    client = world.connect()
    client.send(frame, stream: 1)
    world.settle(.milliseconds(60))
  }

  /// A subscription, with unlimited demand by default.
  static func subscribe(
    _ start: Subscribe.Start = .earliest, epoch: UInt64 = 0, cursor: String = "",
    granted: UInt64 = Credit.unlimited
  ) -> Subscribe {
    Subscribe(
      topic: FloorWorld.topic, start: start, epoch: epoch, grantedThrough: granted, cursor: cursor)
  }

  var subscribed: Subscribed? { try? client.frames(on: 1).first?.decoded(Subscribed.self) }

  var offsets: [UInt64] { client.records(on: 1).map(\.offset) }

  /// The payloads, which are the offsets at publication, also in compacted topics.
  var payloads: [String] {
    client.frames(on: 1).flatMap(\.payloads)
  }

  /// The LAG frames, each with the number of dropped records and the next offset.
  var lags: [Lag] {
    client.frames(on: 1).filter { $0.header.type == .lag }.compactMap { try? $0.decoded(Lag.self) }
  }

  /// The records delivered to a group member, by offset, each with its delivery number.
  var deliveries: [UInt64: UInt32] {
    var delivery: UInt32 = 1
    var deliveries: [UInt64: UInt32] = [:]
    for frame in client.frames(on: 1) {
      if frame.header.type == .deliveries, let told = try? frame.decoded(Deliveries.self) {
        delivery = told.count
      }
      for record in frame.delivered { deliveries[record.offset] = delivery }
    }
    return deliveries
  }

  func grant(_ through: UInt64) {
    client.send(Demand(grantedThrough: through), stream: 1)
    world.settle(.milliseconds(60))
  }

  func commit(_ offset: UInt64) {
    client.send(Commit(nextOffset: offset), stream: 1)
    world.settle(.milliseconds(20))
  }

  func settle(_ verdict: Settle.Verdict, _ offset: UInt64, delivery: UInt32 = 1) {
    client.send(Settle(verdict, delivery: delivery, firstOffset: offset, count: 1), stream: 1)
    world.settle(.milliseconds(20))
  }

  func leave() {
    client.send(Cancel(), stream: 1)
    world.settle(.milliseconds(20))
    client.close()
    world.settle(.milliseconds(20))
  }
}

extension ScriptedClient.Received {
  /// The payloads of a DELIVER's records, without keys.
  fileprivate var payloads: [String] {
    guard header.type == .deliver else { return [] }
    return body.withUnsafeBytes { body in
      guard let (front, batch) = try? DeliverHeader.decode(body) else { return [] }
      var payloads: [String] = []
      var iterator = BatchIterator(batch, count: front.count, time: 0)
      while let record = try? iterator.next() {
        let attributes = record.isAttributed ? try? RecordAttributes(record.body) : nil
        let payload = attributes?.payload ?? record.body
        payloads.append(String(decoding: payload.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
      }
      return payloads
    }
  }
}
