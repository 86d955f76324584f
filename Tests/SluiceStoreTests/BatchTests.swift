import SluiceWire
import Testing

@testable import SluiceStore

@Suite struct BatchTests {
  private static func items(_ payloads: [String]) -> [UInt8] {
    payloads.flatMap { payload -> [UInt8] in
      let bytes = Array(payload.utf8)
      return withUnsafeBytes(of: UInt32(bytes.count).littleEndian) { Array($0) } + bytes
    }
  }

  private static func block(_ payloads: [String], time: Int64, at offset: UInt64 = 7) -> BatchBlock {
    let block = BatchBlock(firstOffset: offset, bytesBefore: 100)
    let items = items(payloads)
    let taken = items.withUnsafeBytes { block.append($0, count: payloads.count, time: time) }
    #expect(taken == (items.count, payloads.count))
    return block
  }

  @Test func whatWasSealedIsFound() throws {
    let block = Self.block(["one", "two"], time: 1000)
    let more = Self.items(["three"])
    _ = more.withUnsafeBytes { block.append($0, count: 1, time: 2000) }
    block.seal(for: TopicID(rawValue: 3))
    let view = try #require(BatchView(block.value, of: TopicID(rawValue: 3), at: 7))
    #expect(
      view.header
        == BatchHeader(
          firstOffset: 7, bytesBefore: 100, firstTime: 1000, lastTime: 2000, records: 3, recordBytes: 23))
    #expect(view.items.count == 23 + 2 * RecordLayout.timeMarkSize)
    #expect(view.firstOffset(atOrAfter: 0) == 7)
    #expect(view.firstOffset(atOrAfter: 1001) == 9)
    #expect(view.firstOffset(atOrAfter: 2001) == nil)
  }

  @Test func everyByteCounts() throws {
    let block = Self.block(["payload"], time: 5)
    block.seal(for: TopicID(rawValue: 1))
    let good = Array(block.value)
    #expect(good.withUnsafeBytes { BatchView($0, of: TopicID(rawValue: 2), at: 7) } == nil)
    #expect(good.withUnsafeBytes { BatchView($0, of: TopicID(rawValue: 1), at: 8) } == nil)
    for position in good.indices {
      var bad = good
      bad[position] ^= 0x10
      #expect(bad.withUnsafeBytes { BatchView($0, of: TopicID(rawValue: 1), at: 7) } == nil)
    }
    for length in 0..<good.count {
      #expect(good[..<length].withUnsafeBytes { BatchView($0, of: TopicID(rawValue: 1), at: 7) } == nil)
    }
  }

  @Test func aBlockTakesWhatFitsAndOneRecordInAnyCase() {
    let block = BatchBlock(firstOffset: 0, bytesBefore: 0)
    let items = Self.items(Array(repeating: String(repeating: "x", count: 996), count: 100))
    let taken = items.withUnsafeBytes { block.append($0, count: 100, time: 1) }
    #expect(taken == (65_000, 65))
    #expect(block.bytes <= BatchBlock.fullBytes)
    let long = Self.items([String(repeating: "y", count: 100_000)])
    #expect(long.withUnsafeBytes { block.append($0, count: 1, time: 1) } == (0, 0))
    let other = BatchBlock(firstOffset: 65, bytesBefore: block.bytesThrough)
    #expect(long.withUnsafeBytes { other.append($0, count: 1, time: 1) } == (100_004, 1))
  }

  /// This allows a search for a timestamp among batches.
  @Test func timesDontGoBackInABatch() {
    let block = BatchBlock(firstOffset: 7, bytesBefore: 0)
    let item = Self.items(["x"])
    #expect(item.withUnsafeBytes { block.append($0, count: 1, time: 1_000) } == (5, 1))
    #expect(item.withUnsafeBytes { block.append($0, count: 1, time: 999) } == (0, 0))
    #expect(item.withUnsafeBytes { block.append($0, count: 1, time: 1_000) } == (5, 1))
    #expect(block.endOffset == 9 && block.lastTime == 1_000)
  }

  @Test func topicsAreReadAsWritten() throws {
    var topic = StoredTopic(name: "orders.eu", settings: TopicSettings(replayRecords: 5), epoch: 99)
    topic.settings.storage = .durable
    topic.settings.sync = .interval(50)
    topic.lineage = [.init(epoch: 1, end: 10), .init(epoch: 2, end: 20)]
    topic.ending = .failure(code: .producerFailure, message: "no more")
    topic.endedBy = 12
    topic.settings.connect = .autoStay(3)
    topic.settings.whenProducerLost = .fail(after: 30_000)
    var unstated = topic
    unstated.isStated = false
    unstated.floor = 21
    unstated.setbacks = [.init(offset: 22, latest: 2_000, time: 5), .init(offset: 30, latest: 90, time: -7)]
    #expect(try unstated.encoded().withUnsafeBytes { try StoredTopic(decoding: $0) } == unstated)
    let bytes = topic.encoded()
    #expect(try bytes.withUnsafeBytes { try StoredTopic(decoding: $0) } == topic)
    for length in 0..<bytes.count {
      let error = #expect(throws: StoreError.self) {
        try bytes[..<length].withUnsafeBytes { try StoredTopic(decoding: $0) }
      }
      #expect(error?.kind == .damaged)
    }
    var newer = bytes
    newer[0] = 2
    let error = #expect(throws: StoreError.self) {
      try newer.withUnsafeBytes { try StoredTopic(decoding: $0) }
    }
    #expect(error?.kind == .newer)
  }
}
