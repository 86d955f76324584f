import SluiceWire
import Testing

@testable import SluiceLog

/// The guarantees of a store of newest records, case by case. See `CompactedModelTests` for all the others.
@Suite struct CompactedRecordsTests {
  @Test func onlyTheNewestOfEachKeyIsThereInTheOrderOfOffsets() {
    let store = CompactedRecords(retention: .everything)
    store.append([("a", "1"), ("b", "2"), ("a", "3")], at: 10)
    store.append([("c", "4"), ("b", "5")], at: 11)
    #expect(store.shown() == ["2 a=3 at 10", "3 c=4 at 11", "4 b=5 at 11"])
    #expect(store.shown(from: 3) == ["3 c=4 at 11", "4 b=5 at 11"])
    #expect(store.shown(from: 3, before: 4) == ["3 c=4 at 11"])
    #expect(store.statistics().records == 3)
    #expect(store.statistics().head == 5)
    #expect(store.statistics().firstOffset == 2)
  }

  @Test func anEmptyKeyIsAKey() {
    let store = CompactedRecords(retention: .everything)
    store.append([("", "1"), ("a", "2"), ("", "3")], at: 0)
    #expect(store.shown() == ["1 a=2 at 0", "2 =3 at 0"])
  }

  @Test func headersAreNoPayload() throws {
    var batch = BatchBuilder()
    let none = UnsafeRawBufferPointer(start: nil, count: 0)
    try [UInt8]("k".utf8).withUnsafeBytes {
      try batch.append(key: $0, headers: [([1], [2, 3])], payload: $0)
      try batch.append(key: $0, headers: [([1], [2, 3])], payload: none)
    }
    let store = CompactedRecords(retention: .everything)
    batch.bytes.withUnsafeBytes { store.append($0, at: 0) }
    #expect(store.shown() == [])
    #expect(store.statistics().deletions == 1)
  }

  @Test func aBatchWithoutAKeyIsFoundOut() {
    func first(_ keys: [String?]) -> Int? {
      var batch = BatchBuilder()
      for key in keys { batch.add(key, "payload") }
      return batch.bytes.withUnsafeBytes { CompactedRecords.firstWithoutKey($0) }
    }
    #expect(first(["a", "", "b"]) == nil)
    #expect(first(["a", nil, "b"]) == 1)
    #expect(first([nil]) == 0)
    var headersOnly = BatchBuilder()
    try? headersOnly.append(
      key: nil, headers: [([1], [2])], payload: UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(headersOnly.bytes.withUnsafeBytes { CompactedRecords.firstWithoutKey($0) } == 0)
  }

  // MARK: Deletions

  @Test func aDeletionTakesItsKeyOutAndIsShownOnlyToThoseWhoReadOn() {
    let store = CompactedRecords(retention: .everything)
    store.append([("a", "1"), ("b", "2"), ("a", "")], at: 0)
    #expect(store.shown() == ["1 b=2 at 0"])
    #expect(store.shown(from: 1, deletionsFrom: 1) == ["1 b=2 at 0", "2 a= at 0"])
    #expect(store.shown(from: 1, deletionsFrom: 3) == ["1 b=2 at 0"])
    store.append([("a", "4")], at: 0)
    #expect(store.shown(deletionsFrom: 0) == ["1 b=2 at 0", "3 a=4 at 0"])
    #expect(store.statistics().deletions == 0)
  }

  @Test func whoMayHaveMissedADeletionIsToldSo() {
    let store = CompactedRecords(retention: .everything, graceBytes: 100)
    for number in 0..<20 { store.append([("\(number)", "")], at: 0) }
    let (walk, records) = store.walked(from: 5, before: 20, deletionsFrom: 5)
    guard case .deletionsMissed(let before) = walk else { return #expect(Bool(false), "\(walk)") }
    #expect(records == [])
    #expect(before > 5 && before < 20)
    #expect(store.shown(from: 5, deletionsFrom: before).count == 20 - Int(before))
    // No late subscriber misses anything.
    #expect(store.walked(from: 5, before: 20, deletionsFrom: 20).walk == .finished)
  }

  // MARK: Limits

  @Test func limitsCountTheNewestAlone() {
    let store = CompactedRecords(retention: Retention(records: 2), graceBytes: 0)
    for round in 0..<100 { store.append([("a", "\(round)"), ("b", "\(round)")], at: 0) }
    #expect(store.shown(from: 198) == ["198 a=99 at 0", "199 b=99 at 0"])
    store.append([("c", "1")], at: 0)
    #expect(store.shown(from: 199) == ["199 b=99 at 0", "200 c=1 at 0"])
    #expect(store.walked(from: 0, before: 201).walk == .recordsMissed(before: 199))
    #expect(store.statistics().firstOffset == 199)
    #expect(store.start(at: .offset(0), before: 201).missed == 199)
  }

  @Test func bytesAreLimitedToo() {
    let store = CompactedRecords(retention: Retention(bytes: 30), graceBytes: 0)
    store.append([("a", "12345"), ("b", "12345"), ("c", "12345")], at: 0)
    #expect(store.shown(from: 1) == ["1 b=12345 at 0", "2 c=12345 at 0"])
    store.append([("d", String(repeating: "x", count: 40))], at: 0)
    #expect(store.statistics().records == 0)
    #expect(store.statistics().firstOffset == 4)
  }

  @Test func whatIsTooOldGoesWithoutAnAppend() {
    let store = CompactedRecords(retention: Retention(ageMilliseconds: 10), graceBytes: 0)
    store.append([("a", "1")], at: 100)
    store.append([("b", "2")], at: 105)
    store.trim(now: 110)
    #expect(store.shown().count == 2)
    store.trim(now: 111)
    #expect(store.shown(from: 1) == ["1 b=2 at 105"])
    // A newer record makes it young again.
    store.append([("b", "3")], at: 115)
    store.trim(now: 120)
    #expect(store.shown(from: 2) == ["2 b=3 at 115"])
  }

  @Test func whoIsUnderWayStillGetsWhatIsWithinTheGrace() {
    let store = CompactedRecords(retention: Retention(records: 1), graceBytes: 1000)
    for number in 0..<10 { store.append([("\(number)", "payload")], at: 0) }
    #expect(store.start(at: .replay, before: 10).offset == 9)
    #expect(store.shown(from: 0).count == 10)
    store.trim(now: 0, graceBytes: 0, keepingFrom: 4)
    #expect(store.walked(from: 0, before: 10).walk == .recordsMissed(before: 4))
    #expect(store.shown(from: 4).count == 6)
    store.trim(now: 0, graceBytes: 0)
    #expect(store.shown(from: 9).count == 1)
    #expect(store.start(at: .offset(2), from: store.lowestForReturning, before: 10).missed == 7)
  }

  @Test func removingAllIsTold() {
    let store = CompactedRecords(retention: .everything)
    store.append([("a", "1"), ("b", "2")], at: 7)
    store.removeAll()
    #expect(store.walked(from: 0, before: 2).walk == .recordsMissed(before: 2))
    #expect(store.statistics().records == 0)
    store.append([("a", "3")], at: 5)
    #expect(store.shown(from: 2) == ["2 a=3 at 7"])
  }

  // MARK: Memory

  @Test(arguments: [1, 10, 1000, 5000])
  func memoryFollowsWhatIsWanted(keys: Int) {
    let store = CompactedRecords(retention: .everything, graceBytes: 1000)
    var random = SplitMix(state: UInt64(keys))
    let payload = String(repeating: "x", count: 100)
    for _ in 0..<20_000 { store.append([("key \(random.below(keys))", payload)], at: 0) }
    // 4 bytes of word, 3 of lengths, the key and the payload, and 32 and some slots for finding them.
    let statistics = store.statistics()
    #expect(statistics.memoryBytes <= 3 * (statistics.bytes + Int(statistics.records) * 80) + (70 << 10))
    for key in 0..<keys { store.append([("key \(key)", "")], at: 0) }
    #expect(store.statistics().memoryBytes <= 150 << 10)
    #expect(store.statistics().records == 0)
  }

  @Test func aHugeRecordLeavesNothingBehind() {
    let store = CompactedRecords(retention: .everything)
    for _ in 0..<10 {
      store.append([("huge", String(repeating: "x", count: 1 << 20)), ("small", "1")], at: 0)
    }
    #expect(store.statistics().memoryBytes < 3 << 20)
    store.append([("huge", "1"), ("small", "2")], at: 0)
    #expect(store.statistics().memoryBytes < 70 << 10)
  }
}

// MARK: - Reading

extension CompactedRecords {
  func append(_ records: [(key: String, payload: String)], at milliseconds: Int64) {
    var batch = BatchBuilder()
    for (key, payload) in records { batch.add(key, payload) }
    batch.bytes.withUnsafeBytes { append($0, at: milliseconds) }
    // All of it is walked, so not each time.
    if statistics().records < 100 || statistics().head % 10_000 == 0 { _checkInvariants() }
  }

  func walked(
    from offset: UInt64 = 0, before end: UInt64, deletionsFrom: UInt64 = .max
  ) -> (walk: CompactedWalk, records: [String]) {
    var records: [String] = []
    let walk = walk(from: offset, before: end, deletionsFrom: deletionsFrom) {
      let body = UnsafeRawBufferPointer(rebasing: $0.item[4...])
      let attributes = try? RecordAttributes(body)
      let key = String(decoding: attributes?.key ?? body, as: UTF8.self)
      let payload = String(decoding: attributes?.payload ?? body, as: UTF8.self)
      records.append("\($0.offset) \(key)=\(payload) at \($0.time)")
      return true
    }
    return (walk, records)
  }

  func shown(from offset: UInt64 = 0, before end: UInt64 = .max, deletionsFrom: UInt64 = .max) -> [String] {
    walked(from: offset, before: end, deletionsFrom: deletionsFrom).records
  }
}

extension BatchBuilder {
  mutating func add(_ key: String?, _ payload: String) {
    [UInt8](payload.utf8).withUnsafeBytes { payload in
      guard let key else { return append(payload) }
      // Both are short enough.
      [UInt8](key.utf8).withUnsafeBytes { try? append(key: $0, headers: [], payload: payload) }
    }
  }
}
