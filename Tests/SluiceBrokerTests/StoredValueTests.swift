import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The encoding of a topic's stored state besides records.
@Suite struct StoredValueTests {
  /// Decodes `bytes` after all kinds of damage: decoding either succeeds, or throws an error with a message.
  private func damage<Value>(
    _ bytes: [UInt8], rounds: Int, _ random: inout SeededRandom,
    _ decode: ([UInt8]) throws(StoreError) -> Value
  ) {
    func attempt(_ bytes: [UInt8]) -> StoreError? {
      do throws(StoreError) {
        _ = try decode(bytes)
        return nil
      } catch {
        return error
      }
    }
    for count in 0..<min(bytes.count, 200) { #expect(attempt(Array(bytes.prefix(count))) != nil) }
    #expect(attempt(bytes + [0])?.kind == .damaged)
    var later = bytes
    later[0] = .max
    #expect(attempt(later)?.kind == .newer)
    for _ in 0..<rounds {
      var damaged = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let index = Int.random(in: 0..<damaged.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: damaged[index] = UInt8.random(in: 0...255, using: &random)
        case 2: damaged.insert(UInt8.random(in: 0...255, using: &random), at: index)
        default: if damaged.count > 1 { damaged.remove(at: index) }
        }
      }
      if let error = attempt(damaged) { #expect(error.kind == .damaged || error.kind == .newer) }
    }
  }

  @Test func aProducerComesBack() throws {
    var random = SeededRandom.printed()
    for next in [0, 1, 77, 1 << 63] as [UInt64] {
      #expect(
        try StoredProducer(decoding: StoredProducer(next: next).encoded()) == StoredProducer(next: next))
    }
    for next in [1 << 63 + 1, .max] as [UInt64] {
      #expect(throws: StoreError.self) { try StoredProducer(decoding: StoredProducer(next: next).encoded()) }
    }
    damage(StoredProducer(next: 5).encoded(), rounds: 300, &random, StoredProducer.init(decoding:))
  }

  /// `sluice restore` reads them without this module.
  @Test func positionsAreReadFromWhatIsStored() throws {
    let cursor = StoredCursor(.init(place: .init(epoch: 3, nextOffset: 4), isMoved: true))
    let position = try #require(
      try StoredPosition(StoredState(.cursor, key: StoredValue.key("c"), value: cursor.encoded())))
    #expect(position.name == "c" && !position.isGroup && position.epoch == 3 && position.nextOffset == 4)
    let state = StoredState(.group, key: StoredValue.key("g"), value: group([], frontier: 5).encoded())
    let place = try #require(try StoredPosition(state))
    #expect(place.name == "g" && place.isGroup && place.epoch == 7 && place.nextOffset == 5)
    let producer = StoredState(.producer, key: StoredValue.key(7), value: StoredProducer(next: 1).encoded())
    #expect(try StoredPosition(producer) == nil)
    for length in 0..<17 {
      let cut = StoredState(.cursor, key: StoredValue.key("c"), value: Array(cursor.encoded().prefix(length)))
      #expect(throws: StoreError.self) { try StoredPosition(cut) }
    }
  }

  @Test func aCursorComesBack() throws {
    var random = SeededRandom.printed()
    for isMoved in [false, true] {
      let cursor = StoredCursor(.init(place: .init(epoch: 3, nextOffset: .max), isMoved: isMoved))
      #expect(try StoredCursor(decoding: cursor.encoded()) == cursor)
      damage(cursor.encoded(), rounds: 300, &random, StoredCursor.init(decoding:))
    }
  }

  private func group(_ entries: [GroupState.Snapshot.Entry], frontier: UInt64) -> StoredGroup {
    StoredGroup(
      epoch: 7, seed: 1 << 63,
      settings: JoinGroup.Settings(
        acknowledgement: .explicit, order: .byKey, deadline: 1_000, deliveries: 3, deadLetters: "dead",
        filter: RecordFilter([.init(.header("kind"), .equals([1, 2]))])),
      state: .init(frontier: frontier, entries: entries))
  }

  @Test func aGroupComesBack() throws {
    var random = SeededRandom.printed()
    for round in 0..<200 {
      let hasDelays = round % 2 == 0
      var offset = UInt64.random(in: 0...(.max / 2), using: &random)
      let entries = (0..<Int.random(in: 0...60, using: &random)).map { _ in
        offset += [1, 1, 1, 2, 1 << 40].randomElement(using: &random)!
        return GroupState.Snapshot.Entry(
          offset: offset, deliveries: [0, 1, 1, 1, 2, .max].randomElement(using: &random)!,
          key: Bool.random(using: &random) ? nil : [0, 5, .max].randomElement(using: &random)!,
          deadLetterReason: [nil, nil, .retried, .memberLeft].randomElement(using: &random)!,
          retryAt: hasDelays ? [nil, 1, 1_700_000_000_000, .max].randomElement(using: &random)! : nil)
      }
      let stored = group(entries, frontier: offset + 1)
      #expect(try StoredGroup(decoding: stored.encoded()) == stored)
      damage(stored.encoded(), rounds: 60, &random) { bytes throws(StoreError) in
        try StoredGroup(decoding: bytes)
      }
    }
  }

  @Test func aBackoffIsStored() throws {
    var stored = group([.init(offset: 3, deliveries: 2, retryAt: 5)], frontier: 9)
    stored.settings.retryBackoff = .init(first: 1_000, longest: .max)
    #expect(try StoredGroup(decoding: stored.encoded()) == stored)
    #expect(stored.encoded().first == 3)
    // Without delays an earlier version can read it.
    #expect(group([.init(offset: 3, deliveries: 2)], frontier: 9).encoded().first == 1)
  }

  @Test func aGroupThatClaimsTooMuchIsDamaged() {
    var bytes = group([], frontier: .max).encoded()
    bytes.removeLast()
    for (total, run) in [(1, 2), (1, .max), (1 << 25, 1 << 25), (.max, .max), (2, 1)] as [(UInt64, UInt64)] {
      var writer = ByteWriter(bytes)
      writer.compact(total)
      writer.compact(5)
      writer.compact(run)
      #expect(throws: StoreError.self) { try StoredGroup(decoding: writer.bytes + [1, 0, 0]) }
    }
  }

  @Test func aFullGroupTakesLittle() throws {
    let all = 0..<65_536 as Range<UInt64>
    let inARow = group(all.map { .init(offset: 1 << 40 + $0, deliveries: 1) }, frontier: .max)
    #expect(inARow.encoded().count < 200)
    let scattered = group(
      all.map { .init(offset: 3 * $0, deliveries: UInt32($0 % 3), key: $0 % 1000 &* 0x9E37_79B9_7F4A_7C15) },
      frontier: .max)
    #expect(scattered.encoded().count < 500_000)
    let ownKeys = group(
      all.map { .init(offset: $0, deliveries: 1, key: $0 &* 0x9E37_79B9_7F4A_7C15) }, frontier: .max)
    #expect(ownKeys.encoded().count < 900_000)
    #expect(try StoredGroup(decoding: ownKeys.encoded()) == ownKeys)
  }

  @Test func keysAreInTheOrderOfNumbers() throws {
    #expect(StoredValue.key(0x0102) == [0, 0, 0, 0, 0, 0, 1, 2])
    #expect(try StoredValue.number(StoredValue.key(.max - 1)) == .max - 1)
    #expect(throws: StoreError.self) { try StoredValue.number([1, 2]) }
    #expect(try StoredValue.name(StoredValue.key("größe")) == "größe")
    #expect(throws: StoreError.self) { try StoredValue.name([0xFF]) }
  }

  @Test func whatAKeyComesToIsTheSameInEveryProcess() throws {
    var batch = BatchBuilder()
    try Array("order-17".utf8).withUnsafeBytes { key in
      try batch.append(key: key, headers: [], payload: UnsafeRawBufferPointer(start: nil, count: 0))
    }
    let settings = JoinGroup.Settings(acknowledgement: .explicit, order: .byKey)
    let keys = batch.bytes.withUnsafeBytes { bytes in
      [0, 1].map { settings.look(at: bytes, nil, seed: $0).key }
    }
    // Values computed with XXH3.
    #expect(keys == [0x234C_EFC8_1040_CBBE, 0x5CA7_7775_ABF3_B958])
  }
}
