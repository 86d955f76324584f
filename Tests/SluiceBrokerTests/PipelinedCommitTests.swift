import SluiceIO
import SluiceLog
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceTopics

/// Commits to a store that settles them later, several at a time.
@Suite struct PipelinedCommitTests {
  @Test(arguments: 1...200)
  func whatIsCommittedIsWhatWasAppendedInOrder(seed: UInt64) throws {
    var setting = PipelineSetting(seed: seed)
    for _ in 0..<300 { try setting.step() }
    try setting.finish()
    for topic in setting.topics where !topic.isRejected {
      #expect(try setting.stored(topic) == Array(0..<topic.appended), "topic \(topic.name)")
      #expect(topic.committed == topic.appended)
      #expect(topic.completed == topic.asked)
    }
    #expect(setting.service.backlog == 0)
  }

  @Test func severalCommitsAreUnderWayAndEachTakesWhatCameSince() throws {
    // A record uses 24 bytes with the mark of its time: more than half of the store's commit size, so none waits for another.
    let setting = PipelineSetting(seed: 1, depth: 4, commitBytes: 32, topics: 1)
    for _ in 0..<6 {
      setting.append(to: setting.topics[0])
      setting.world.run(for: .milliseconds(1))
    }
    #expect(setting.store.deepest == 4)
    #expect(setting.store.underWay.map { $0.changes[0].batches.map(\.firstOffset) } == [[0], [1], [2], [3]])
    #expect(setting.topics[0].committed == 0)
    try setting.store.settleFirst()
    setting.world.run(for: .milliseconds(1))
    #expect(setting.topics[0].committed == 1)
    // The records that waited form one commit.
    #expect(setting.store.underWay.last?.changes[0].batches.map(\.firstOffset) == [4])
  }

  @Test func whileTwoSmallCommitsAreUnderWayALittleGathers() throws {
    let setting = PipelineSetting(seed: 1, depth: 4, commitBytes: 1 << 20, topics: 1)
    for _ in 0..<6 {
      setting.append(to: setting.topics[0])
      setting.world.run(for: .milliseconds(1))
    }
    func begun() -> [[UInt64]] { setting.store.underWay.map { $0.changes[0].batches.map(\.firstOffset) } }
    #expect(begun() == [[0], [1]])
    try setting.store.settleFirst()
    setting.world.run(for: .milliseconds(1))
    #expect(begun() == [[1], [2]])
    #expect(setting.store.underWay.last?.changes[0].batches.last?.endOffset == 6)
  }

  @Test func aBacklogGoesInCommitsOfTheSizeThatTheStoreWants() throws {
    // A record uses 8 bytes, and the first record of a commit 16 more for the mark of its time.
    let setting = PipelineSetting(seed: 1, depth: 3, commitBytes: 48, topics: 1)
    for _ in 0..<12 { setting.append(to: setting.topics[0]) }
    setting.world.run(for: .milliseconds(1))
    #expect(setting.store.underWay.map { $0.changes[0].batches.map(\.firstOffset) } == [[0], [4], [8]])
    #expect(setting.store.underWay.map { $0.changes[0].batches.map(\.endOffset) } == [[4], [8], [12]])
    for _ in 0..<3 { try setting.store.settleFirst() }
    setting.world.run(for: .milliseconds(1))
    #expect(setting.topics[0].committed == 12)
    #expect(setting.service.backlog == 0)
  }

  @Test func behindAFullCommitALittleWaitsForMore() throws {
    let setting = PipelineSetting(seed: 1, depth: 8, commitBytes: 48, topics: 1)
    func append(_ count: Int) {
      for _ in 0..<count { setting.append(to: setting.topics[0]) }
      setting.world.run(for: .milliseconds(1))
    }
    func begun() -> [[UInt64]] { setting.store.underWay.map { $0.changes[0].batches.map(\.firstOffset) } }
    append(5)
    // A full commit, and one record, which waits until a commit settles or another is full.
    #expect(begun() == [[0]])
    append(1)
    #expect(begun() == [[0]])
    append(3)
    #expect(begun() == [[0], [4]])
    try setting.store.settleFirst()
    setting.world.run(for: .milliseconds(1))
    #expect(begun() == [[4]])
    try setting.store.settleFirst()
    setting.world.run(for: .milliseconds(1))
    #expect(begun() == [[8]])
  }

  @Test func afterAFenceNothingIsStoredOrAcknowledged() throws {
    let setting = PipelineSetting(seed: 2, depth: 4, commitBytes: 1 << 20, topics: 2)
    for topic in setting.topics {
      for _ in 0..<3 {
        setting.append(to: topic)
        setting.world.run(for: .milliseconds(1))
      }
    }
    setting.ask(setting.topics[0])
    setting.store.fence()
    setting.world.run(for: .seconds(10))
    #expect(setting.topics.allSatisfy { $0.isRejected && $0.committed == 0 })
    #expect(setting.topics[0].completed == 1)
    #expect(setting.service.backlog == 0)
    #expect(setting.service.refusal?.code == .topicMoved)
    // The store itself checks that no commit starts after the fence.
    setting.append(to: setting.topics[1])
    setting.world.run(for: .seconds(10))
  }

  @Test func whileTheStoreCannotBeReachedPublishersAreTold() throws {
    let setting = PipelineSetting(seed: 3, depth: 4, topics: 1)
    setting.append(to: setting.topics[0])
    setting.world.run(for: .milliseconds(1))
    setting.store.delay(StoreError(.unavailable, "the engine has no leader"))
    setting.world.run(for: .milliseconds(1))
    #expect(setting.service.refusal?.message.contains("can't reach its storage") == true)
    setting.store.delay(nil)
    setting.world.run(for: .milliseconds(1))
    #expect(setting.service.refusal == nil)
    try setting.store.settleFirst()
    setting.world.run(for: .milliseconds(1))
    #expect(setting.topics[0].committed == 1)
  }

  @Test func aServiceThatWasClosedIsReleasedWithItsTopics() {
    weak var service: StoreService?
    weak var topic: PipelinedTopic?
    do {
      let setting = PipelineSetting(seed: 1, topics: 1)
      (service, topic) = (setting.service, setting.topics[0])
      // As the broker does: its completion needs the service.
      setting.service.close { [service = setting.service] in _ = service.refusal }
      setting.world.run(for: .seconds(20))
    }
    #expect(service == nil)
    #expect(topic == nil)
  }
}

/// A service with topics over a ``PipelinedStore``, in simulated time.
struct PipelineSetting {
  private var random: TestSupport.SeededRandom
  let world: SimulatedWorld
  let store: PipelinedStore
  let service: StoreService
  private(set) var topics: [PipelinedTopic] = []

  init(seed: UInt64, depth: Int? = nil, commitBytes: Int? = nil, topics count: Int? = nil) {
    random = TestSupport.SeededRandom(seed: seed)
    world = SimulatedWorld(seed: seed, loops: 0, conditions: .calm)
    store = PipelinedStore(
      depth: depth ?? Int.random(in: 1...6, using: &random),
      commitBytes: commitBytes ?? [1, 30, 64, 1 << 20].randomElement(using: &random)!)
    service = StoreService(
      store, pool: SegmentPool(maximumPooledBytes: 0), limits: TopicLimits(), writer: world.makeLoop(),
      readers: [world.makeLoop()], metrics: BrokerMetrics(), report: { _ in })
    service.start(nextTopic: TopicID(rawValue: 1)) {}
    topics = (0..<(count ?? Int.random(in: 1...5, using: &random))).map { number in
      PipelinedTopic("t\(number)", service)
    }
    service.adopt(topics)
    world.run(for: .milliseconds(1))
  }

  func append(to topic: PipelinedTopic) {
    topic.append()
    service.kick()
  }

  func ask(_ topic: PipelinedTopic) {
    topic.ask()
    service.kick()
  }

  mutating func step() throws {
    let topic = topics.randomElement(using: &random)!
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<9: append(to: topic)
    case 9: ask(topic)
    case 10: store.room = [Int.max, 1, 200].randomElement(using: &random)!
    case 11 where !topics.contains { $0.isRejected } && Int.random(in: 0..<10, using: &random) == 0:
      store.rejected = topic.storage?.id
    case 12: service.flush {}
    default: try store.settleFirst()
    }
    world.run(for: .milliseconds(Int64([0, 1, 1, 150].randomElement(using: &random)!)))
  }

  /// Settles all commits.
  func finish() throws {
    store.room = .max
    for _ in 0..<200 {
      try store.settleFirst()
      world.run(for: .milliseconds(500))
    }
    #expect(store.underWay.isEmpty)
  }

  /// The numbers of a topic's records, as stored.
  func stored(_ topic: PipelinedTopic) throws -> [Int] {
    var found: [Int] = []
    try store.memory.batches(of: topic.storage!.id, from: 0) { _, bytes in
      // After the header: a time mark and a record of four bytes, repeated.
      let block = Array(bytes.dropFirst(BatchHeader.size))
      found += PipelinedTopic.numbers(in: block)
      return true
    }
    return found
  }
}

/// A topic that appends numbers.
// @unchecked: a simulation runs on one thread at a time.
final class PipelinedTopic: DurableTopic, @unchecked Sendable {
  let name: String
  let storage: StoreTopicState?
  private var tail: UncommittedTail
  private(set) var appended = 0
  /// Records that were reported as stored.
  private(set) var committed = 0
  /// The numbers of completions requested and called.
  private(set) var asked = 0
  private(set) var completed = 0
  private(set) var isRejected = false

  init(_ name: String, _ service: StoreService) {
    self.name = name
    tail = UncommittedTail(StoredExtent(), commitBytes: service.store.commitBytes)
    storage = StoreTopicState(
      id: service.newTopic(), service: service, settings: TopicSettings(), extent: StoredExtent())
    tail.noteRow()
  }

  var isDeleted: Bool { false }
  var keptFrom: UInt64? { nil }

  func append() {
    guard !isRejected else { return }
    let item =
      withUnsafeBytes(of: UInt32(4).littleEndian) { Array($0) }
      + withUnsafeBytes(of: UInt32(appended).littleEndian) { Array($0) }
    let before = tail.waitingBytes
    _ = item.withUnsafeBytes { tail.append($0, count: 1, at: 1) }
    storage?.service.noteWaiting(tail.waitingBytes - before)
    appended += 1
    if tail.ask(within: .zero) { storage?.service.enqueue(self, within: .zero) }
  }

  func ask() {
    asked += 1
    let waits = tail.whenCommitted(.init(name: nil) { [weak self] _ in self?.completed += 1 })
    guard waits else { return completed += 1 }
    if tail.ask(within: .zero) { storage?.service.enqueue(self, within: .zero) }
  }

  static func numbers(in items: [UInt8]) -> [Int] {
    var found: [Int] = []
    items.withUnsafeBytes { bytes in
      var position = 0
      while position < bytes.count {
        let word = RecordLayout.word(at: bytes.baseAddress! + position)
        if RecordLayout.isRecord(word) {
          found.append(Int(bytes.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)))
        }
        position += RecordLayout.itemSize(word)
      }
    }
    return found
  }

  func takeForCommit(at clocks: ClockReading) -> (
    taken: UncommittedTail.Taken, change: TopicChange, keep: UInt64?
  )? {
    guard let storage else { return nil }
    var change = TopicChange(storage.id)
    change.row = StoredTopic(name: name, settings: TopicSettings(), epoch: 1)
    return (tail.take(), change, nil)
  }

  func undo(_ taken: UncommittedTail.Taken) { tail.undo(taken) }

  func committed(_ commit: TopicCommit) {
    tail.committed(commit.taken)
    for block in commit.taken.blocks {
      #expect(block.firstOffset == UInt64(committed), "what is committed comes in order, once")
      committed = Int(block.endOffset)
    }
  }

  func quarantine(_ taken: UncommittedTail.Taken, _ fault: Fault) -> (
    bytes: Int, completions: [UncommittedTail.Completion]
  ) {
    isRejected = true
    return tail.discard(taken)
  }
}
