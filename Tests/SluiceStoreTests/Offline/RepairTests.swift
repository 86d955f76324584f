import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore

@Suite("Repairing a store")
struct RepairTests {
  private let store = MemoryStore()
  private let topic = TopicID(rawValue: 1)

  init() throws {
    try StoreScene.fill(store)
  }

  @discardableResult
  private func repair(
    dry: Bool = false, _ store: MemoryStore? = nil
  ) throws -> (steps: [StoreRepair.Step.Action], summary: StoreRepair) {
    var steps: [StoreRepair.Step.Action] = []
    let summary = try StoreRepair.run(
      store ?? self.store, isDryRun: dry, found: { _ in }, done: { steps.append($0.action) })
    #expect(summary.steps == UInt64(steps.count))
    return (steps, summary)
  }

  @Test func nothingIsDoneWhereNothingIsWrong() throws {
    try store.close()
    #expect(try repair().steps.isEmpty)
    // As it was closed: nothing was written.
    #expect(try store.contents().wasClosed)
  }

  @Test func onlyTheDamagedBatchGoes() throws {
    store.damage(topic, batchAt: 3) { $0[50] ^= 1 }
    let before = try store.extent(of: topic)
    let dry = try repair(dry: true)
    #expect(dry.steps == [.removedBatch(3, missing: 3..<5)])
    #expect(try StoreScene.findings(store).first?.problem == .batchChecksum)
    let done = try repair()
    #expect(done.steps == dry.steps && done.summary == dry.summary)
    #expect(done.summary.missing == 2 && done.summary.left == 0)
    #expect(try StoreScene.records(store).keys.sorted() == [0, 1, 2, 5, 6, 7, 8, 9])
    #expect(try store.extent(of: topic) == before)
    #expect(try StoreScene.findings(store).map(\.isDamage) == [false])
    #expect(try repair().steps.isEmpty)
  }

  @Test func theOldestBatchGoesAsIfItWereDropped() throws {
    store.damage(topic, batchAt: 0) { $0[50] ^= 1 }
    let steps = try repair().steps
    #expect(steps.count == 2 && steps[0] == .removedBatch(0, missing: 0..<3))
    let extent = try #require(try store.extent(of: topic))
    #expect(extent.firstOffset == 3 && extent.bytesBefore == 15 && extent.head == 10)
    #expect(try StoreScene.findings(store).isEmpty)
  }

  @Test func offsetsOfTheNewestBatchAreNotGivenAgain() throws {
    store.damage(topic, batchAt: 5) { $0[50] ^= 1 }
    #expect(try repair().steps == [.removedBatch(5, missing: 5..<10)])
    #expect(try store.extent(of: topic)?.head == 10)
    // The topic continues after them.
    var change = TopicChange(topic)
    change.batches = try StoreScene.batches([["next"]], of: topic, from: 10, bytesBefore: 52)
    try store.commit([change])
    #expect(try StoreScene.records(store)[10] == "next")
    #expect(try StoreScene.findings(store).map(\.problem.code) == ["gap", "time-goes-back"])
  }

  @Test func aTopicWithoutASoundBatchGoesOnWhereItWas() throws {
    for offset: UInt64 in [0, 3, 5] { store.damage(topic, batchAt: offset) { $0[50] ^= 1 } }
    try repair()
    let extent = try #require(try store.extent(of: topic))
    #expect(extent.firstOffset == 10 && extent.head == 10 && extent.bytes == 0)
    #expect(try StoreScene.findings(store).isEmpty)
  }

  @Test func anExtentIsFoundAgain() throws {
    let before = try store.extent(of: topic)
    for change: @Sendable (inout StoredExtent) -> Void in [
      { $0.firstOffset = 77 }, { $0.head = 1 }, { $0.bytesBefore = .max }, { $0.bytesThrough = 0 },
      { $0.lastTime = .max },
    ] {
      store.damage(topic, .extent { change(&$0) })
      #expect(try repair().steps.count == 1)
      #expect(try store.extent(of: topic) == before)
    }
    store.damage(topic, .extentLost)
    try repair()
    #expect(try store.extent(of: topic) == before)
    // The number of records in a damaged last batch is unknown: none of their offsets is reused.
    store.damage(topic, .extentLost)
    store.damage(topic, batchAt: 5) { $0[50] ^= 1 }
    try repair()
    #expect(try #require(try store.extent(of: topic)).head >= 10)
    #expect(try StoreScene.findings(store).allSatisfy { !$0.isDamage })
  }

  @Test func statesRowsAndNumbers() throws {
    for number: UInt64 in 2...7 { try StoreScene.fill(store, "topic.\(number)", id: number) }
    store.damage(TopicID(rawValue: 2), .row(StoreError(.damaged, "no row")))
    store.damage(TopicID(rawValue: 3), .row(StoreError(.newer, "tomorrow's")))
    store.damage(TopicID(rawValue: 4), .name("recovered.2"))
    store.damage(TopicID(rawValue: 5), .name("orders"))
    store.damage(TopicID(rawValue: 6), .strayed)
    store.damage(topic, .state(key: [99, 1]))
    store.damage(TopicID(rawValue: 7), .name("a b"))
    store.damage(TopicID(rawValue: 5), .nextTopic)
    let summary = try repair().summary
    // Entries of a later version are left unchanged.
    #expect(summary.left == 1)
    #expect(try StoreScene.findings(store).map(\.problem.code) == ["superseded", "row-is-newer"])
    let contents = try store.contents()
    #expect(
      contents.topics.map(\.row.name) == [
        "orders", "recovered.2.2", "topic.3", "recovered.2", "orders", "recovered.7",
      ])
    #expect(contents.nextTopic > TopicID(rawValue: 7))
    #expect(contents.topics[1].row.settings.replayRecords == TopicSettings.unlimited)
    #expect(try StoreScene.records(store, 2).count == 10)
    #expect(try store.states(of: topic, .cursor).count == 1)
    #expect(try repair().steps.isEmpty)
  }

  @Test func whatCantBeMendedIsLeftAndCounted() throws {
    store.damage(topic, batchAt: 3) {
      $0[16] += 1
      $0 = BatchView.sealed($0, for: topic)
    }
    let done = try repair()
    #expect(done.steps.isEmpty && done.summary.left == 2)
    #expect(try StoreScene.records(store).count == 10)
  }

  @Test("whatever bytes change, what is sound stays and what is left is in order")
  func randomDamage() throws {
    var random = SeededRandom.printed(for: "random damage")
    for _ in 0..<200 {
      let store = MemoryStore()
      try StoreScene.fill(store, &random)
      var kept: [TopicID: [UInt64: String]] = [:]
      let topics = try store.contents().topics.map(\.id)
      for topic in topics {
        var offsets: [UInt64] = []
        try store.batches(of: topic, from: 0) { offset, _ in
          offsets.append(offset)
          return true
        }
        for offset in offsets where Int.random(in: 0..<3, using: &random) == 0 {
          store.damage(topic, batchAt: offset) { bytes in
            let index = Int.random(in: bytes.indices, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: bytes.removeSubrange(index...)
            default: bytes[index] &+= 1
            }
          }
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
          store.damage(
            topic,
            .extent { $0.bytesThrough = .random(in: 0...99, using: &random) })
        }
        if Int.random(in: 0..<6, using: &random) == 0 { store.damage(topic, .extentLost) }
        kept[topic] = try StoreScene.records(store, topic.rawValue)
      }
      let summary = try repair(store).summary
      #expect(summary.left == 0)
      #expect(try StoreScene.findings(store).allSatisfy { !$0.isDamage })
      for topic in topics { #expect(try StoreScene.records(store, topic.rawValue) == kept[topic]) }
      #expect(try repair(store).steps.isEmpty)
    }
  }
}
