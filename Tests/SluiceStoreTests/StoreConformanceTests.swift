import EngineTestSupport
import SluiceStore
import SluiceWire
import TestSupport
import Testing

/// The requirements of every store.
@Suite struct StoreConformanceTests {
  @Test(arguments: StoreEngine.allCases)
  func randomCommitsAreKept(_ engine: StoreEngine) throws {
    var seeds = SeededRandom.printed(for: "randomCommitsAreKept(\(engine.rawValue))")
    for round in 0..<engine.rounds {
      let seed = seeds.next()
      do {
        try play(engine, StoreWorkload(seed: seed))
      } catch {
        Issue.record("round \(round): \(error)")
        return
      }
    }
  }

  private func play(_ engine: StoreEngine, _ workload: StoreWorkload) throws {
    var workload = workload
    var tested = try engine.make()
    for _ in 0..<Int.random(in: 1...50, using: &workload.random) {
      switch Int.random(in: 0..<100, using: &workload.random) {
      case 0..<70:
        let (changes, after) = workload.commit()
        if workload.chance(10) { try refuse(changes, tested.store, &workload) }
        try tested.store.commit(changes)
        workload.adopt(after)
      case 70..<85:
        try look(tested.store, &workload)
      case 85..<95:
        while try tested.store.reclaim(), !workload.chance(30) {}
      default:
        let isClean = workload.chance(50)
        try tested.reopen(cleanly: isClean)
        workload.reopened(cleanly: isClean)
        try tested.store.check(against: workload.model, isJustOpened: true)
      }
    }
    try tested.store.check(against: workload.model)
  }

  /// Commits an invalid change after valid ones.
  private func refuse(
    _ changes: [TopicChange], _ store: any TopicStore, _ workload: inout StoreWorkload
  ) throws {
    var wrong = TopicChange(TopicID(rawValue: 1_000_000))
    if workload.chance(50), let (id, topic) = workload.model.topics.first,
      topic.extent.head > 0, !changes.contains(where: { $0.topic == id })
    {
      wrong = TopicChange(id)
      wrong.batches = [sealed([([1], .max)], for: id, at: topic.extent.head + 1, bytesBefore: 0)]
    }
    if let refusal = Self.refusal(of: changes + [wrong], by: store) {
      // The error concerns the changes, not the disk.
      try same(refusal.kind, .invalid, "why a commit that can't be was refused")
      return try store.check(against: workload.model)
    }
    throw TestFailure("a commit that can't be was made")
  }

  private static func refusal(of changes: [TopicChange], by store: any TopicStore) -> StoreError? {
    do throws(StoreError) {
      try store.commit(changes)
      return nil
    } catch {
      return error
    }
  }

  private func look(_ store: any TopicStore, _ workload: inout StoreWorkload) throws {
    let model = workload.model
    let id = TopicID(rawValue: UInt64.random(in: 0...model.nextTopic.rawValue, using: &workload.random))
    let extent = model.topics[id]?.extent ?? StoredExtent()
    try store.check(id, against: model, from: .random(in: 0...extent.head + 2, using: &workload.random))
    let last = extent.lastTime == .min ? 1000 : extent.lastTime
    for time in [Int64.min, 1000, .random(in: 990...last + 5, using: &workload.random), last, last + 1, .max]
    {
      let expected = model.topics[id]?.offset(atOrAfter: time)
      try same(store.offset(in: id, atOrAfter: time), expected, "topic \(id.rawValue) from \(time) on")
      if let shard = (store as? ShardAsTopicStore)?.shard {
        try same(
          shard.find(time, in: id), expected, "topic \(id.rawValue) from \(time) on, found by the shard")
      }
    }
    var count = 0
    try store.batches(of: id, from: 0) { _, _ in
      count += 1
      return count < 2
    }
    try same(count, min(2, model.topics[id]?.kept.count ?? 0), "batches until it was enough")
  }

  @Test(arguments: StoreEngine.allCases, [0, 256])
  func aStateWithoutAKeyThatFitsIsRefusedForWhatItIs(_ engine: StoreEngine, _ length: Int) throws {
    let tested = try engine.make()
    // Keep its directory as long.
    defer { withExtendedLifetime(tested) {} }
    let store = tested.store
    let id = TopicID(rawValue: 1)
    var change = TopicChange(id)
    change.row = .named("t")
    try store.commit([change])
    change.states = [.init(.cursor, key: [UInt8](repeating: 0x61, count: length), value: nil)]
    let refusal = Self.refusal(of: [change], by: store)
    #expect(refusal?.kind == .invalid)
    #expect(refusal == change.states[0].violation)
    change.states = [.init(.cursor, key: [UInt8](repeating: 0x61, count: 255), value: [1])]
    try store.commit([change])
    #expect(try store.states(of: id, .cursor).count == 1)
  }

  @Test(arguments: StoreEngine.allCases)
  func aTopicMayBeginAnywhere(_ engine: StoreEngine) throws {
    let tested = try engine.make()
    // Keep its directory as long.
    defer { withExtendedLifetime(tested) {} }
    let store = tested.store
    let id = TopicID(rawValue: 7)
    var change = TopicChange(id)
    change.row = .named("late")
    change.batches = [sealed([([1, 2], 5)], for: id, at: 40, bytesBefore: 1000)]
    try store.commit([change])
    let extent = try #require(try store.extent(of: id))
    #expect((extent.firstOffset, extent.head) == (40, 41))
    #expect((extent.bytesBefore, extent.bytesThrough, extent.bytes) == (1000, 1006, 6))
    #expect(try store.stored(id, from: 0).map(\.offset) == [40])
    #expect(try store.contents().nextTopic == TopicID(rawValue: 8))
  }

  @Test(arguments: StoreEngine.allCases)
  func topicsDoNotSeeEachOthers(_ engine: StoreEngine) throws {
    let tested = try engine.make()
    // Keep its directory as long.
    defer { withExtendedLifetime(tested) {} }
    let store = tested.store
    let ids = [TopicID(rawValue: 1), TopicID(rawValue: 2), TopicID(rawValue: 256)]
    for id in ids.reversed() { try store.add(id, row: .named("t\(id.rawValue)"), payloads: [[1]]) }
    for id in ids {
      var change = TopicChange(id)
      change.states = [.init(.group, key: [1], value: [UInt8(truncatingIfNeeded: id.rawValue)])]
      try store.commit([change])
    }
    for id in ids { try store.add(id, payloads: [[2], [3]]) }
    for id in ids {
      #expect(try store.stored(id).map(\.offset) == [0, 1, 2])
      #expect(try store.states(of: id, .group).map(\.value) == [[UInt8(truncatingIfNeeded: id.rawValue)]])
      #expect(try store.states(of: id, .cursor).isEmpty)
    }
    var deletion = TopicChange(ids[1])
    deletion.isDeletion = true
    try store.commit([deletion])
    while try store.reclaim() {}
    #expect(try store.stored(ids[0]).count == 3)
    #expect(try store.stored(ids[1]).isEmpty)
    #expect(try store.states(of: ids[2], .group).count == 1)
    #expect(try store.extent(of: ids[1]) == nil)
  }

  @Test(arguments: StoreEngine.allCases)
  func anEmptiedTopicGoesOnWhereItWas(_ engine: StoreEngine) throws {
    var tested = try engine.make()
    let id = TopicID(rawValue: 1)
    try tested.store.add(id, row: .named("a"), payloads: [[1], [2]], time: 9)
    var change = TopicChange(id)
    change.truncateBefore = .max
    try tested.store.commit([change])
    try tested.reopen(cleanly: false)
    let extent = try #require(try tested.store.extent(of: id))
    #expect((extent.firstOffset, extent.head, extent.bytes, extent.lastTime) == (2, 2, 0, 9))
    #expect(try tested.store.stored(id).isEmpty)
    #expect(try tested.store.offset(in: id, atOrAfter: 0) == nil)
    try tested.store.add(id, payloads: [[3]])
    #expect(try tested.store.stored(id).map(\.offset) == [2])
  }

  @Test(arguments: StoreEngine.allCases)
  func aRecordOfManyMegabytesFits(_ engine: StoreEngine) throws {
    var tested = try engine.make()
    let id = TopicID(rawValue: 1)
    let payload = [UInt8](repeating: 3, count: 40 << 20)
    try tested.store.add(id, row: .named("a"), payloads: [[1], payload, [2]])
    try tested.reopen(cleanly: false)
    let batches = try tested.store.stored(id, from: 1)
    #expect(batches.map(\.offset) == [1, 2])
    #expect(batches[0].bytes.count == BatchHeader.size + 12 + 4 + payload.count)
    let isWhole = batches[0].bytes.withUnsafeBytes { BatchView($0, of: id, at: 1) != nil }
    #expect(isWhole)
  }

  /// Another thread may drop batches that are being read: each is returned completely or not at all.
  @Test(arguments: StoreEngine.allCases)
  func readersAndTheCommitterDoNotDisturbEachOther(_ engine: StoreEngine) throws {
    let tested = try engine.make()
    // Keep its directory as long.
    defer { withExtendedLifetime(tested) {} }
    let store = tested.store
    let id = TopicID(rawValue: 1)
    try store.add(id, row: .named("a"), payloads: [[0]])
    let read: @Sendable () throws -> Void = {
      while try store.contents().topics[0].row.ending == nil {
        var next: UInt64?
        try store.batches(of: id, from: 0) { offset, bytes in
          if BatchView(bytes, of: id, at: offset) == nil || next.map({ $0 != offset }) ?? false {
            Issue.record("what was found at \(offset) isn't a batch, or doesn't follow")
          }
          next = offset + 1
          return true
        }
      }
    }
    try concurrently(read, read, read) {
      defer { _ = try? store.commit([Self.ending(of: id)]) }
      for round in 1...150 {
        let payload = Array(repeating: UInt8(truncatingIfNeeded: round), count: round * 61)
        var change = TopicChange(id)
        let bytes = try store.extent(of: id)?.bytesThrough ?? 0
        change.batches = [sealed([(payload, 1)], for: id, at: UInt64(round), bytesBefore: bytes)]
        change.truncateBefore = round > 20 ? UInt64(round - 20) : nil
        try store.commit([change])
      }
    }
    #expect(try store.stored(id).map(\.offset) == Array(130...150))
  }

  private static func ending(of id: TopicID) -> TopicChange {
    var change = TopicChange(id)
    change.row = .named("a")
    change.row?.ending = .finished
    return change
  }
}
