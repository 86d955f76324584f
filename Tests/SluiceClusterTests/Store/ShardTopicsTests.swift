import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceCluster

@Suite("What an owner knows of its topics")
struct ShardTopicsTests {
  private static let id = TopicID(rawValue: 4)
  private static let row = StoredTopic(name: "orders", settings: TopicSettings(), epoch: 1)

  /// A change with one record; the first one includes the topic's row.
  private static func record(_ offset: UInt64, truncateBefore: UInt64? = nil) -> TopicChange {
    var change = TopicChange(id)
    if offset == 0 { change.row = row }
    let block = BatchBlock(firstOffset: offset, bytesBefore: offset * 5)
    _ = [UInt8]([1, 0, 0, 0, 9]).withUnsafeBytes { block.append($0, count: 1, time: 4) }
    block.seal(for: id)
    change.batches = [block]
    change.truncateBefore = truncateBefore
    return change
  }

  private static func deletion() -> TopicChange {
    var change = TopicChange(id)
    change.isDeletion = true
    return change
  }

  /// A commit in progress whose messages start at a sequence.
  private static func begin(
    _ change: TopicChange, _ topics: inout ShardTopics, at sequence: UInt64
  ) throws -> PendingCommit {
    let extent = try topics.extent(after: change, in: "stream")
    topics.project(change, extent)
    var pending = PendingCommit(sequence, [change], [extent])
    _ = pending.messages(
      behind: sequence - 1, under: 1, topics, EngineNames(shard: ShardID(rawValue: 1)), atMost: 1 << 20)
    topics.sent(pending)
    return pending
  }

  private static func store(_ pending: PendingCommit, _ topics: inout ShardTopics) {
    topics.take(pending.changes[0], pending.sentExtents[0], at: pending.firstSequences[0])
  }

  private static func empty() -> ShardTopics { ShardTopics([:], next: TopicID(rawValue: 1)) }

  @Test("records under way follow each other, and are contents when they are stored")
  func projection() throws {
    var topics = Self.empty()
    let first = try Self.begin(Self.record(0), &topics, at: 5)
    let second = try Self.begin(Self.record(1), &topics, at: 6)
    #expect(topics[Self.id]?.projected.head == 2 && topics[Self.id]?.extent.head == 0)
    #expect(topics.contents.topics.isEmpty)
    Self.store(first, &topics)
    #expect(topics.contents.topics.map(\.extent.head) == [1])
    #expect(topics.contents.nextTopic == TopicID(rawValue: 5))
    Self.store(second, &topics)
    #expect(topics.contents.topics.map(\.extent.head) == [2])
    #expect(topics[Self.id]?.index.entries(from: 0).map(\.sequence) == [5, 6])
    #expect(topics[Self.id]?.floor == 5 && topics[Self.id]?.last == 6)
  }

  @Test("a change of an unknown topic needs its row, and a record must follow")
  func invalid() throws {
    var topics = Self.empty()
    #expect(throws: StoreError.self) { try topics.extent(after: Self.record(1), in: "stream") }
    _ = try Self.begin(Self.record(0), &topics, at: 5)
    #expect(throws: StoreError.self) { try topics.extent(after: Self.record(2), in: "stream") }
  }

  @Test("a topic whose deletion is under way takes no change, and is gone when that is stored")
  func deletion() throws {
    var topics = Self.empty()
    Self.store(try Self.begin(Self.record(0), &topics, at: 5), &topics)
    let deletion = try Self.begin(Self.deletion(), &topics, at: 6)
    #expect(throws: StoreError.self) { try topics.extent(after: Self.record(1), in: "stream") }
    #expect(topics.contents.topics.count == 1)
    Self.store(deletion, &topics)
    #expect(topics[Self.id] == nil && topics.ids.isEmpty)
  }

  @Test("failed commits leave what is stored, and nothing of a topic that isn't")
  func failures() throws {
    var topics = Self.empty()
    topics.failed([try Self.begin(Self.record(0), &topics, at: 5)])
    #expect(topics[Self.id] == nil)
    Self.store(try Self.begin(Self.record(0), &topics, at: 5), &topics)
    let failed = [
      try Self.begin(Self.record(1), &topics, at: 6), try Self.begin(Self.deletion(), &topics, at: 7),
    ]
    topics.failed(failed)
    #expect(topics[Self.id]?.projected.head == 1 && topics[Self.id]?.isDeleting == false)
    #expect(try topics.extent(after: Self.record(1), in: "stream")?.head == 2)
  }

  @Test("what a commit was to drop is there again when it isn't stored")
  func unsent() throws {
    var topics = Self.empty()
    for offset in 0..<3 as Range<UInt64> {
      Self.store(try Self.begin(Self.record(offset), &topics, at: 5 + offset), &topics)
    }
    let pending = try Self.begin(Self.record(3, truncateBefore: 2), &topics, at: 8)
    #expect(topics[Self.id]?.sentBeginning == .init(firstOffset: 2, bytesBefore: 10))
    topics.unsent([pending])
    #expect(topics[Self.id]?.sentBeginning == .init(firstOffset: 0, bytesBefore: 0))
    #expect(topics[Self.id]?.projected.head == 4)
  }
}
