import SluiceIO
import SluiceLog
import SluiceSimulation
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A durable compacted topic, its producer, and subscribers that start late or resume, while brokers on the same disk are killed and stopped. The results
/// are compared with a dictionary.
///
/// The only producer publishes exactly once, so the record with its n-th sequence must always have offset n.
final class CompactStory {
  struct Made: Hashable {
    var key: String
    /// Nil for a deletion.
    var payload: [UInt8]?
  }

  /// A record that a subscriber received.
  struct Read {
    var offset: UInt64
    var made: Made
  }

  static let topic = "t"
  private static let producer: UInt64 = 7

  let world: SimulatedWorld
  let disk: DurableDisk
  private let host: DurableHost
  private let clients: SimulatedLoop
  private var random: SeededRandom

  private(set) var made: [Made] = []
  /// The number of records on disk.
  private(set) var stored = 0
  /// The present limit, and the offset before which the topic was trimmed.
  var limit: UInt64?
  private var trimmedTo: UInt64 = 0
  /// Whether the topic has, or had, a limit.
  private var isLimited: Bool
  /// The floor that the last audit found if limits drop records, and all records found.
  private var floor: UInt64 = 0
  private var kept: [Read] = []
  private var publication: ScriptedClient?
  private var resuming: StoryReader

  let keys: Int
  let largest: Int

  init(
    seed: UInt64, sync: TopicSettings.Sync, keys: Int, largest: Int, limit: UInt64? = nil,
    store: any TopicStore = MemoryStore()
  ) throws {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: .calm)
    random = SeededRandom(seed: seed &* 0x9e37_79b9)
    clients = world.makeLoop(name: "clients")
    disk = DurableDisk(seed: seed, store: store)
    host = DurableHost(world, disk, brokerLoops: 2) { _ in }
    self.keys = keys
    self.largest = largest
    self.limit = limit
    isLimited = limit != nil
    resuming = StoryReader()
    disk.whenCommitted = { [unowned self] in committed($0) }
    try host.start()
    var settings = TopicSettings()
    settings.storage = .durable
    settings.sync = sync
    settings.compact = true
    settings.replayRecords = limit ?? TopicSettings.unlimited
    let client = connect()
    client.send(TopicCreate(topic: Self.topic, settings: settings), stream: 1)
    settle()
    try #require(client.types(on: 1) == [.topicInfo])
  }

  // MARK: The broker

  var broker: Broker { host.broker }

  func kill() {
    host.kill()
    publication = nil
  }

  func restart() throws {
    world.run(for: .milliseconds(50))
    try host.start()
    try checkRestored()
  }

  func stop() throws {
    #expect(host.stop())
    publication = nil
    try host.start()
    try checkRestored()
  }

  func settle(_ time: Duration = .milliseconds(100)) { world.run(for: time) }

  private func connect() -> ScriptedClient {
    let client = ScriptedClient.connected(to: DurableHost.address, in: world, on: clients)
    client.send(Hello(maximumFrame: 1 << 20, keepalive: 600_000, name: "test"), stream: 0)
    settle(.milliseconds(20))
    return client
  }

  private func committed(_ changes: [TopicChange]) {
    for batch in changes.flatMap(\.batches) {
      Self.records(in: batch.items, from: batch.firstOffset) { read in
        #expect(read.offset == UInt64(stored), "record \(read.offset) is stored at \(stored)")
        #expect(made.indices.contains(stored) && read.made == made[stored])
        stored += 1
      }
    }
  }

  static func records(in items: UnsafeRawBufferPointer, from first: UInt64, _ body: (Read) -> Void) {
    var iterator = BatchIterator(items, time: 0)
    var offset = first
    while let record = try? iterator.next() {
      if let attributes = try? RecordAttributes(record.body), let key = attributes.key {
        let made = Made(
          key: String(decoding: key, as: UTF8.self),
          payload: attributes.payload.isEmpty ? nil : Array(attributes.payload))
        body(Read(offset: offset, made: made))
      }
      offset += 1
    }
  }

  // MARK: What happens

  /// Publishes records, and waits until they are on disk or the broker dies.
  func publish(_ count: Int, size: Int? = nil) throws {
    for _ in 0..<count {
      let key = "\(random.oneIn(2) ? "a" : "b")\(random.next(in: 0...keys - 1))"
      let length = size ?? random.next(in: 1...max(1, random.next(in: 1...largest)))
      made.append(
        Made(
          key: key,
          payload: size == nil && random.oneIn(6)
            ? nil : [UInt8](repeating: UInt8(truncatingIfNeeded: made.count), count: length)))
    }
    try push()
  }

  func push() throws {
    var attempts = 0
    while stored < made.count, !host.isDead {
      attempts += 1
      try #require(attempts < 400, "\(stored) of \(made.count) records are stored")
      if let open = publication, open.hasEnded || open.refusal(on: 1) != nil { publication = nil }
      if publication == nil { try openPublication() }
      if publication != nil, sent < made.count { try sendRest() }
      // Time also passes if no event is due.
      if !world.run(limit: .milliseconds(100), until: { stored == made.count || host.isDead }) { settle() }
    }
  }

  private func openPublication() throws {
    let client = connect()
    client.send(
      PublishOpen(
        topic: Self.topic, acknowledgement: .durable, producer: Self.producer, firstSequence: UInt64(stored)),
      stream: 1)
    settle(.milliseconds(200))
    guard let frame = client.frames(on: 1).first(where: { $0.header.type == .publishOpened }) else { return }
    publication = client
    sent = Int(try frame.decoded(PublishOpened.self).nextSequence)
    #expect(sent == stored)
    try sendRest()
  }

  private var sent = 0

  private func sendRest() throws {
    guard let publication else { return }
    while sent < made.count {
      var batch = BatchBuilder()
      let first = sent
      repeat {
        let record = made[sent]
        try Array(record.key.utf8).withUnsafeBytes { key in
          try (record.payload ?? []).withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
        }
        sent += 1
      } while sent < made.count && batch.bytes.count < 200_000
      publication.publish(batch, from: UInt64(first), stream: 1)
    }
  }

  /// Publishes on the open publication without waiting.
  func publishAhead(_ count: Int) throws {
    let before = made.count
    for _ in 0..<count {
      made.append(
        Made(key: "a\(random.next(in: 0...keys - 1))", payload: [UInt8(truncatingIfNeeded: made.count)]))
    }
    if publication != nil, sent == before { try sendRest() }
  }

  func trim(_ frame: TopicTrim.Limit) throws {
    let client = connect()
    client.send(TopicTrim(topic: Self.topic, frame), stream: 1)
    try #require(world.run(limit: .seconds(5)) { client.types(on: 1) == [.topicInfo] })
    let kept = expected().map(\.offset)
    switch frame {
    case .from(let offset): trimmedTo = max(trimmedTo, offset)
    case .newest(let count):
      guard UInt64(kept.count) > count else { return }
      trimmedTo = max(trimmedTo, count == 0 ? UInt64(stored) : kept[kept.count - Int(count)])
    }
  }

  func set(limit: UInt64?) throws {
    isLimited = true
    self.limit = limit
    var settings = TopicSettings()
    settings.replayRecords = limit ?? TopicSettings.unlimited
    let client = connect()
    client.send(TopicSet(topic: Self.topic, settings: settings), stream: 1)
    try #require(world.run(limit: .seconds(5)) { client.types(on: 1) == [.topicInfo] })
  }

  // MARK: What must hold

  /// The newest record of each key, by offset. Late subscribers get all of them; under a limit, the newest of them. Records that a limit dropped never
  /// come back, even after the key that displaced them was deleted.
  func expected(_ prefix: String = "") -> [Read] {
    var newest: [String: Int] = [:]
    for (offset, record) in made[..<stored].enumerated() { newest[record.key] = offset }
    let kept = newest.values.sorted().filter { made[$0].payload != nil && UInt64($0) >= trimmedTo }
    return kept.filter { made[$0].key.hasPrefix(prefix) }.map { Read(offset: UInt64($0), made: made[$0]) }
  }

  private func checkRestored() throws {
    guard let topic = broker.core.registry.find(Self.topic) else {
      Issue.record("the topic isn't there any more")
      return
    }
    let statistics = try #require(topic.epoch.newest).statistics()
    #expect(statistics.head == UInt64(stored) && topic.epoch.log.head == UInt64(stored))
    let most = min(UInt64(expected().count), limit ?? .max)
    #expect(statistics.records == most || isLimited && statistics.records < most)
  }

  /// All published records are stored: late subscribers get the dictionary, and the resuming subscriber has the same.
  func audit() throws {
    try push()
    if stored < made.count { return }
    settle(.milliseconds(300))
    for prefix in ["", "a", "b", "a1"] {
      let read = try readAll(prefix)
      let all = expected(prefix)
      let expected = isLimited ? Array(all.suffix(read.count)) : all
      #expect(read.map(\.offset) == expected.map(\.offset), "late subscriber to \(prefix)")
      #expect(read.map(\.made) == expected.map(\.made))
      guard prefix.isEmpty else { continue }
      #expect(UInt64(read.count) <= limit ?? .max)
      guard let first = read.first?.offset else { continue }
      #expect(first >= floor, "record \(first) comes back")
      if isLimited { floor = first }
      kept = read
    }
    try resume()
  }

  private func readAll(_ prefix: String) throws -> [Read] {
    let client = connect()
    let filter = prefix.isEmpty ? RecordFilter() : RecordFilter([.init(.key, .hasPrefix(Array(prefix.utf8)))])
    client.send(
      Subscribe(topic: Self.topic, start: .replay, grantedThrough: Credit.unlimited, filter: filter),
      stream: 1)
    try #require(
      world.run(limit: .seconds(10), every: .milliseconds(5)) { client.types(on: 1).contains(.live) })
    client.close()
    return client.frames(on: 1).flatMap(StoryReader.records)
  }

  private func resume() throws {
    for attempt in 0... {
      try #require(attempt < 10, "the subscriber that resumes never comes to the head")
      if resuming.client?.hasEnded ?? true {
        resuming.begin(connect())
        settle(.milliseconds(100))
      }
      _ = world.run(limit: .seconds(2), every: .milliseconds(5)) {
        resuming.take()
        return resuming.mustStartOver || resuming.isLive && resuming.next >= stored
      }
      if !resuming.mustStartOver { break }
      resuming.startOver()
    }
    var all: [String: [UInt8]] = [:]
    for record in made[..<stored] { all[record.key] = record.payload }
    let has = resuming.dictionary
    for read in kept {
      #expect(has[read.made.key] == read.made.payload, "the subscriber that resumes lacks \(read.made.key)")
    }
    for (key, payload) in has {
      #expect(all[key] == payload, "the subscriber that resumes has another \(key)")
    }
  }

  /// Makes the resuming subscriber read the received frames.
  func read() { resuming.take() }

  /// The topic's size in the store.
  func space() throws -> (states: Int, batchBytes: UInt64) {
    let id = try #require(broker.core.registry.find(Self.topic)?.storage?.id)
    let extent = try disk.store.extent(of: id)
    return (try disk.store.states(of: id, .newest).count, extent?.bytes ?? 0)
  }
}

/// A subscriber that keeps a dictionary across lost connections.
final class StoryReader {
  private(set) var client: ScriptedClient?
  private var taken = 0
  private(set) var epoch: UInt64 = 0
  private(set) var next: UInt64 = 0
  private(set) var isLive = false
  /// The broker reported dropped records or deletions, or a new epoch.
  private(set) var mustStartOver = false
  private(set) var dictionary: [String: [UInt8]] = [:]

  func begin(_ client: ScriptedClient) {
    self.client = client
    (taken, isLive) = (0, false)
    client.send(
      Subscribe(
        topic: CompactStory.topic, start: epoch == 0 ? .replay : .offset(next), epoch: epoch,
        grantedThrough: Credit.unlimited), stream: 1)
  }

  func startOver() {
    client?.close()
    client = nil
    (epoch, next, mustStartOver, dictionary) = (0, 0, false, [:])
  }

  func take() {
    guard let client else { return }
    let frames = client.frames(on: 1)
    for frame in frames[taken...] {
      switch frame.header.type {
      case .subscribed:
        guard let subscribed = try? frame.decoded(Subscribed.self) else { break }
        // Records of an epoch that isn't continued may be void.
        if epoch != 0, epoch != subscribed.epoch { mustStartOver = true }
        (epoch, next) = (subscribed.epoch, subscribed.nextOffset)
      case .live: isLive = true
      case .lag: mustStartOver = true
      case .error:
        mustStartOver = true
      default:
        for read in Self.records(frame) {
          #expect(read.offset >= next, "record \(read.offset) comes where \(next) is next")
          next = read.offset + 1
          dictionary[read.made.key] = read.made.payload
        }
      }
      if isLive, case .live = frame.header.type, let live = try? frame.decoded(Live.self) {
        next = max(next, live.nextOffset)
      }
    }
    taken = frames.count
  }

  static func records(_ frame: ScriptedClient.Received) -> [CompactStory.Read] {
    guard frame.header.type == .deliver else { return [] }
    return frame.body.withUnsafeBytes { body in
      guard let (front, batch) = try? DeliverHeader.decode(body) else { return [] }
      var records: [CompactStory.Read] = []
      CompactStory.records(in: batch, from: front.firstOffset) { records.append($0) }
      return records
    }
  }
}
