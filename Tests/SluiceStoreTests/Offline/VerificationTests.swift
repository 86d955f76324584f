import SluiceWire
import Testing

@testable import SluiceStore

@Suite("Verifying a store")
struct VerificationTests {
  private let store = MemoryStore()
  private let topic = TopicID(rawValue: 1)

  init() throws {
    try StoreScene.fill(store)
  }

  private func finding(
    _ problem: StoreFinding.Problem, batch: UInt64? = nil, missing: Range<UInt64>? = nil
  ) -> StoreFinding {
    StoreFinding(problem, topic: topic, name: "orders", batch: batch, missing: missing)
  }

  /// Changes a batch and seals it again with a correct checksum.
  private func falsify(_ offset: UInt64, _ change: (inout [UInt8]) -> Void) {
    store.damage(topic, batchAt: offset) { bytes in
      change(&bytes)
      bytes = BatchView.sealed(bytes, for: topic)
    }
  }

  @Test func aSoundStoreHasNoFindings() throws {
    var findings: [StoreFinding] = []
    var last: UInt64 = 0
    let summary = try StoreVerification.run(
      store,
      progress: {
        #expect($0 > last)
        last = $0
        return true
      }, { findings.append($0) })
    #expect(findings.isEmpty)
    #expect(summary.topics == 1 && summary.batches == 3 && summary.records == 10 && summary.states == 3)
    #expect(summary.bytes == 10 * 5 + 2)
    #expect(summary.damaged == 0 && summary.missing == 0)
    #expect(try StoreScene.findings(MemoryStore()).isEmpty)
  }

  @Test func itStopsWhenNobodyWaits() {
    #expect(throws: StoreError.self) { try StoreVerification.run(store, progress: { _ in false }, { _ in }) }
  }

  @Test("a byte of a batch that changed is found, and which records are gone", arguments: [0, 9, 44, 50, 70])
  func aChangedByte(position: Int) throws {
    store.damage(topic, batchAt: 3) { $0[position] ^= 4 }
    #expect(try StoreScene.findings(store) == [finding(.batchChecksum, batch: 3, missing: 3..<5)])
  }

  @Test func everyByteOfEveryBatchCounts() throws {
    for offset: UInt64 in [0, 3, 5] {
      var size = 0
      store.damage(topic, batchAt: offset) { size = $0.count }
      for position in 0..<size {
        store.damage(topic, batchAt: offset) { $0[position] ^= 0x80 }
        #expect(try StoreScene.findings(store).map(\.batch) == [offset])
        store.damage(topic, batchAt: offset) { $0[position] ^= 0x80 }
      }
    }
    #expect(try StoreScene.findings(store).isEmpty)
  }

  @Test func theLastBatchIsMissingUpToTheHead() throws {
    store.damage(topic, batchAt: 5) { $0.removeLast() }
    #expect(try StoreScene.findings(store) == [finding(.batchChecksum, batch: 5, missing: 5..<10)])
  }

  @Test func batchesThatAreNone() throws {
    store.damage(topic, batchAt: 0) { $0 = [1, 2, 3] }
    store.damage(topic, batchAt: 3) { $0 = [] }
    #expect(
      try StoreScene.findings(store) == [
        finding(.batchTooShort(bytes: 3), batch: 0, missing: 0..<3),
        finding(.batchTooShort(bytes: 0), batch: 3, missing: 3..<5),
      ])
  }

  @Test func anotherTopicsBatchIsNotTaken() throws {
    store.damage(topic, batchAt: 3) { $0 = BatchView.sealed($0, for: TopicID(rawValue: 2)) }
    #expect(try StoreScene.findings(store) == [finding(.batchChecksum, batch: 3, missing: 3..<5)])
  }

  @Test func aBatchElsewhere() throws {
    falsify(3) { $0[8] = 4 }
    #expect(
      try StoreScene.findings(store) == [finding(.batchMisplaced(says: 4), batch: 3, missing: 3..<5)])
  }

  @Test func headersThatAreWrong() throws {
    falsify(3) { $0[40] = 3 }
    #expect(
      try StoreScene.findings(store)
        == [finding(.batchRecords(says: 3, has: 2), batch: 3, missing: 3..<5)])
    falsify(3) { $0[40] = 0 }
    #expect(
      try StoreScene.findings(store)
        == [finding(.batchRecords(says: 0, has: 0), batch: 3, missing: 3..<5)])
    falsify(3) {
      $0[40] = 2
      $0[44] += 1
    }
    #expect(
      try StoreScene.findings(store)
        == [finding(.batchBytes(says: 13, has: 12), batch: 3, missing: 3..<5)])
    falsify(3) {
      $0[44] -= 1
      $0[24] += 1
    }
    let times = try StoreScene.findings(store)
    #expect(times.count == 1 && times[0].problem.code == "batch-times" && times[0].missing == 3..<5)
  }

  @Test func numbersBeyondAllBoundsAreNoTrap() throws {
    falsify(0) { for index in 8..<48 { $0[index] = 0xFF } }
    #expect(try StoreScene.findings(store).map(\.problem) == [.batchMisplaced(says: .max)])
    falsify(0) {
      for index in 8..<16 { $0[index] = 0 }
    }
    #expect(try StoreScene.findings(store).map(\.problem.code) == ["batch-items"])
    store.damage(topic, .extent { $0.head = .max })
    #expect(try StoreScene.findings(store).map(\.problem.code) == ["batch-items", "gap"])
  }

  @Test func itemsThatAreNone() throws {
    let items = BatchHeader.size + RecordLayout.timeMarkSize
    // Longer than the rest; of an unknown kind; an incomplete length.
    for word: UInt32 in [100, 0xC000_0001] {
      falsify(3) { bytes in
        bytes.withUnsafeMutableBytes {
          $0.storeBytes(of: word.littleEndian, toByteOffset: items, as: UInt32.self)
        }
      }
      let findings = try StoreScene.findings(store)
      #expect(findings.map(\.problem.code) == ["batch-items"] && findings[0].missing == 3..<5)
    }
    // Attributes with undefined flags.
    falsify(3) { bytes in
      bytes.withUnsafeMutableBytes {
        $0.storeBytes(
          of: RecordLayout.word(.attributed, length: 2).littleEndian, toByteOffset: items, as: UInt32.self)
      }
    }
    #expect(try StoreScene.findings(store).map(\.problem.code) == ["batch-items"])
  }

  @Test func recordsWithoutATimeAndTimesThatGoBack() throws {
    falsify(3) { $0.removeSubrange(BatchHeader.size..<BatchHeader.size + RecordLayout.timeMarkSize) }
    #expect(try StoreScene.findings(store).map(\.problem.code) == ["batch-times"])

    let other = MemoryStore()
    try StoreScene.fill(other)
    other.damage(topic, batchAt: 3) { bytes in
      for position in [24, 32, BatchHeader.size + 4] {
        bytes.withUnsafeMutableBytes {
          $0.storeBytes(of: Int64(999).littleEndian, toByteOffset: position, as: Int64.self)
        }
      }
      bytes = BatchView.sealed(bytes, for: topic)
    }
    #expect(
      try StoreScene.findings(other) == [finding(.timeGoesBack(from: 1_000, to: 999), batch: 3)])
    // The broker's clock was set back, which needs no repair.
    #expect(try StoreScene.findings(other).map(\.isDamage) == [false])
  }

  @Test func batchesThatDontFollow() throws {
    falsify(3) { $0[16] += 1 }
    // The next one differs by as much.
    #expect(
      try StoreScene.findings(store) == [
        finding(.bytesBefore(says: 16, has: 15), batch: 3),
        finding(.bytesBefore(says: 27, has: 28), batch: 5),
      ])
  }

  @Test func aBatchTooMany() throws {
    falsify(0) { bytes in
      // It has four records now; the last is the next batch's first.
      bytes += StoreScene.item([1])
      bytes[40] += 1
      bytes[44] += 5
    }
    let findings = try StoreScene.findings(store)
    #expect(findings.first == finding(.batchOverlap(end: 4), batch: 3, missing: 4..<5))
  }

  @Test func recordsThatWereTakenAwayAreToldAndAreNoDamage() throws {
    store.damage(topic, .batchLost(3))
    let gap = finding(.gap, missing: 3..<5)
    #expect(try StoreScene.findings(store) == [gap])
    #expect(!gap.isDamage)
    store.damage(topic, .batchLost(5))
    #expect(try StoreScene.findings(store) == [finding(.gap, missing: 3..<10)])
  }

  @Test func extentsThatDisagree() throws {
    func problems(_ change: @escaping (inout StoredExtent) -> Void) throws -> [StoreFinding.Problem] {
      let store = MemoryStore()
      try StoreScene.fill(store)
      store.damage(topic, .extent(change))
      return try StoreScene.findings(store).map(\.problem)
    }
    #expect(try problems { $0.firstOffset = 1 } == [.extent(.firstOffset, says: 1, has: 0)])
    #expect(try problems { $0.head = 9 } == [.extent(.head, says: 9, has: 10)])
    #expect(try problems { $0.head = 11 } == [.gap])
    #expect(try problems { $0.bytesBefore = 1 } == [.extent(.bytesBefore, says: 1, has: 0)])
    #expect(try problems { $0.bytesThrough = 1 } == [.extent(.bytesThrough, says: 1, has: 52)])
    #expect(try problems { $0.bytesThrough = 53 } == [.extent(.bytesThrough, says: 53, has: 52)])
    #expect(try problems { $0.lastTime = 0 } == [.extentTime(says: 0, has: 3_000)])
    store.damage(topic, .extentLost)
    #expect(try StoreScene.findings(store) == [finding(.extentUnreadable)])
  }

  @Test func rowsStatesAndNumbers() throws {
    for number: UInt64 in 2...6 { try StoreScene.fill(store, "topic.\(number)", id: number) }
    store.damage(TopicID(rawValue: 2), .row(StoreError(.damaged, "no row")))
    store.damage(TopicID(rawValue: 3), .row(StoreError(.newer, "tomorrow's")))
    store.damage(TopicID(rawValue: 4), .name("a..b"))
    store.damage(TopicID(rawValue: 5), .name("orders"))
    store.damage(TopicID(rawValue: 6), .strayed)
    store.damage(topic, .state(key: [99, 1]))
    store.damage(topic, .state(key: [1]))
    store.damage(topic, .state(key: []))
    store.damage(topic, .state(key: [1, 2, 3]))
    store.damage(topic, .state(key: [2, 0xFF]))
    store.damage(topic, .state(key: [2] + [UInt8](repeating: 7, count: 256)))
    store.damage(TopicID(rawValue: 5), .nextTopic)
    let findings = try StoreScene.findings(store)
    #expect(
      findings.map { "\($0.topic.rawValue) \($0.problem.code)" } == [
        "1 superseded", "2 row", "3 row-is-newer", "4 name", "6 strays", "5 next-topic", "1 state",
        "1 state", "1 state", "1 state", "1 state", "1 state",
      ])
    #expect(findings.dropFirst().allSatisfy { $0.isDamage && !"\($0)".contains("\n") })
    #expect(!findings[0].isDamage)
  }

  /// Earlier versions took the spellings of a name for one, and stored the one with which a topic was created.
  @Test func aNameInAnotherSpellingIsNoDamage() throws {
    let name = "cafe\u{301}.orders"
    try StoreScene.fill(store, name, id: 2)
    let findings = try StoreScene.findings(store)
    #expect(findings == [StoreFinding(.spelling, topic: TopicID(rawValue: 2), name: name)])
    #expect(!findings[0].isDamage)
    #expect(
      "\(findings[0])" == "topic \(name): its name isn't in Unicode's Normalization Form C; "
        + "clients reach it under the composed name")
    var steps: [StoreRepair.Step] = []
    let repair = try StoreRepair.run(store, isDryRun: false, found: { _ in }, done: { steps.append($0) })
    #expect(steps.isEmpty && repair.left == 0)
    let other = MemoryStore()
    try StoreScene.import(StoreScene.export(store).bytes, into: other)
    #expect(try other.contents().topics.map { Array($0.row.name.utf8) }.contains(Array(name.utf8)))
  }

  @Test func aFindingIsALineForPeople() {
    #expect(
      "\(finding(.batchChecksum, batch: 3, missing: 3..<5))"
        == "topic orders, batch at offset 3: its checksum is wrong; records 3 to 4 are missing")
    #expect(
      "\(StoreFinding(.row("it is short"), topic: topic, name: nil))" == "topic number 1: it is short")
    #expect("\(finding(.gap, missing: 7..<8))" == "topic orders: a gap; record 7 is missing")
    #expect("\(finding(.gap, missing: 0..<UInt64.max))".contains("0 to 18446744073709551614 are"))
  }
}
