import SluiceWire
import Testing

@testable import SluiceStore

/// Which epochs a topic's present epoch continues, and up to which offset.
@Suite struct EpochLineageTests {
  private func row(_ epoch: UInt64, _ lineage: [StoredTopic.Ancestor] = []) -> StoredTopic {
    var row = StoredTopic(name: "orders", settings: TopicSettings(), epoch: epoch)
    row.lineage = lineage
    return row
  }

  @Test func aClientThatKnowsMoreGoesOnWhereTheHistoriesPart() {
    var row = row(1)
    row.begin(epoch: 2, continuingUpTo: 5)
    #expect(row.epoch == 2)
    #expect(row.lineage.position(of: 3, in: 1) == 3)
    #expect(row.lineage.position(of: 5, in: 1) == 5)
    #expect(row.lineage.position(of: 12, in: 1) == 5)
    #expect(row.lineage.position(of: 3, in: 7) == nil)
  }

  @Test func aClientOfSeveralEpochsAgoGoesOnBehindTheLeastOfThem() {
    var row = row(1)
    row.begin(epoch: 2, continuingUpTo: 8)
    row.begin(epoch: 3, continuingUpTo: 5)
    #expect(row.lineage.position(of: 12, in: 1) == 5)
    #expect(row.lineage.position(of: 7, in: 2) == 5)
    #expect(row.lineage.position(of: 4, in: 2) == 4)
  }

  @Test func aClientOfWhatFollowedUnderTheSameNumberLosesNothing() {
    var row = row(1)
    row.begin(epoch: 2, continuingUpTo: 5, through: 9)
    #expect(row.lineage.position(of: 9, in: 1) == 9)
    #expect(row.lineage.position(of: 7, in: 1) == 7)
    #expect(row.lineage.position(of: 10, in: 1) == 5)
  }

  @Test func theOldestEpochsAreForgottenFirst() {
    var row = row(1)
    for epoch in 2...(StoredTopic.longestLineage + 2) {
      row.begin(epoch: UInt64(epoch), continuingUpTo: UInt64(epoch))
    }
    #expect(row.lineage.count == StoredTopic.longestLineage)
    #expect(row.lineage.position(of: 0, in: 1) == nil)
    #expect(row.lineage.position(of: 100, in: 2) == 3)
  }

  @Test func aRowIsReadAsItWasWritten() throws {
    for through in [nil, 9] as [UInt64?] {
      var row = row(1, [.init(epoch: 7, end: 2), .init(epoch: 8, end: 5, through: through)])
      row.floor = 4
      let read = try row.encoded().withUnsafeBytes { bytes in try StoredTopic(decoding: bytes) }
      #expect(read.lineage == row.lineage && read.epoch == 1 && read.floor == 4)
    }
  }

  @Test func anImportBeginsAnEpochThatContinuesTheExportedOne() throws {
    let store = MemoryStore()
    try StoreScene.fill(store)
    let other = MemoryStore()
    try StoreScene.import(try StoreScene.export(store).bytes, into: other)
    let row = try #require(try other.contents().topics.first?.row)
    #expect(row.epoch != 1)
    #expect(row.lineage.position(of: 4, in: 1) == 4)
    #expect(row.lineage.position(of: 25, in: 1) == 10)
  }

  /// A backup is restored, the topic continues, and the same backup is restored again.
  @Test func clientsOfWhatAnImportReplacesGoOnWhereTheHistoriesPart() throws {
    let store = MemoryStore()
    try StoreScene.fill(store)
    let backup = try StoreScene.export(store).bytes
    try StoreScene.import(backup, into: store, replacing: true)
    let first = try #require(try store.contents().topics.first).row
    try StoreScene.import(backup, into: store, replacing: true)
    let second = try #require(try store.contents().topics.first).row
    #expect(second.epoch != first.epoch)
    #expect(second.lineage.position(of: 25, in: first.epoch) == 10)
    #expect(second.lineage.position(of: 25, in: 1) == 10)
    #expect(second.lineage.position(of: 6, in: first.epoch) == 6)
  }

  @Test func anotherTopicOfTheSameNameIsNotContinued() throws {
    let other = MemoryStore()
    var change = TopicChange(TopicID(rawValue: 2))
    change.row = row(99)
    try other.commit([change])
    let store = MemoryStore()
    try StoreScene.fill(store)
    try StoreScene.import(try StoreScene.export(store).bytes, into: other, replacing: true)
    let row = try #require(try other.contents().topics.first?.row)
    #expect(row.lineage.map(\.epoch) == [1])
  }
}
