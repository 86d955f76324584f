import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceCluster
@testable import SluiceNATS

@Suite("Changes and checkpoints as messages")
struct EngineChangeTests {
  private static let id = TopicID(rawValue: 9)

  private static func change() -> TopicChange {
    var change = TopicChange(id)
    change.row = StoredTopic(name: "orders", settings: TopicSettings(replayRecords: 3), epoch: 5)
    for offset in 0..<3 {
      let block = BatchBlock(firstOffset: UInt64(offset), bytesBefore: UInt64(offset) * 5)
      _ = [UInt8]([1, 0, 0, 0, UInt8(offset)]).withUnsafeBytes { block.append($0, count: 1, time: 4) }
      block.seal(for: id)
      change.batches.append(block)
    }
    change.states = [
      .init(.cursor, key: [1, 2], value: [3]), .init(.group, key: [4], value: nil),
      .init(.producer, key: [UInt8](repeating: 1, count: 255), value: []),
    ]
    return change
  }

  /// The bodies of messages, joined.
  private static func body(_ payloads: [[UInt8]]) throws -> [UInt8] {
    var parts = PartAssembly()
    var found: [[UInt8]] = []
    for (index, payload) in payloads.enumerated() {
      try payload.withUnsafeBytes { bytes in
        var reader = ByteReader(bytes)
        let envelope = try EngineEnvelope(&reader)
        #expect(envelope.part == index && envelope.parts == payloads.count)
        try parts.take(envelope, reader.remaining, at: 100 + UInt64(index)) {
          body, first throws(StoreError) in
          #expect(first == 100)
          found.append(Array(body))
        }
      }
    }
    #expect(!parts.isOpen)
    return try #require(found.first)
  }

  private static func payloads(
    of change: TopicChange, _ beginning: EngineChange.Beginning?, atMost most: Int
  ) -> [[UInt8]] {
    EngineChange.messages(of: change, beginning, to: "changes", fence: 3, commit: 4, atMost: most)
      .map(\.wholePayload)
  }

  @Test("large batches stand in the message as they are, small ones are copied")
  func inserts() throws {
    var change = TopicChange(Self.id)
    var offset: UInt64 = 0
    for size in [10, 60_000, 20, 5_000] {
      let block = BatchBlock(firstOffset: offset, bytesBefore: 0)
      let record =
        withUnsafeBytes(of: UInt32(size).littleEndian) { Array($0) }
        + [UInt8](repeating: UInt8(truncatingIfNeeded: size), count: size)
      record.withUnsafeBytes { _ = block.append($0, count: 1, time: 1) }
      block.seal(for: Self.id)
      change.batches.append(block)
      offset += 1
    }
    let message = try #require(
      EngineChange.messages(of: change, nil, to: "changes", fence: 3, commit: 4, atMost: 1 << 20).first)
    #expect(message.inserts.map(\.count) == [change.batches[1].bytes, change.batches[3].bytes])
    #expect(message.payload.count < 1_000)
    #expect(message.payloadCount == message.wholePayload.count)
    let body = try Self.body([message.wholePayload])
    let read = try body.withUnsafeBytes { try EngineChange($0) }
    #expect(read.batches.map { Array(body[$0.place]) } == change.batches.map { Array($0.value) })
  }

  @Test("a change is read as it was written, in one message or in several", arguments: [1 << 20, 100, 60])
  func change(atMost most: Int) throws {
    let change = Self.change()
    let beginning = EngineChange.Beginning(firstOffset: 2, bytesBefore: 10)
    let payloads = Self.payloads(of: change, beginning, atMost: most)
    #expect(payloads.allSatisfy { $0.count <= most })
    #expect((payloads.count == 1) == (most == 1 << 20))
    let body = try Self.body(payloads)
    let read = try body.withUnsafeBytes { try EngineChange($0) }
    #expect(read.topic == Self.id && read.row == change.row && read.states == change.states)
    #expect(read.beginning == beginning && !read.isDeletion)
    #expect(read.batches.map { Array(body[$0.place]) } == change.batches.map { Array($0.value) })
  }

  @Test("reading that begins in the middle of a change waits for the next one")
  func middle() throws {
    let payloads = Self.payloads(of: Self.change(), nil, atMost: 100)
    var parts = PartAssembly()
    var whole = 0
    for payload in payloads.dropFirst() + payloads {
      try payload.withUnsafeBytes { bytes in
        var reader = ByteReader(bytes)
        let envelope = try EngineEnvelope(&reader)
        try parts.take(envelope, reader.remaining, at: 1) { _, _ in whole += 1 }
      }
    }
    #expect(whole == 1)
  }

  @Test("a checkpoint is read as it was written; one of a deleted topic has no state")
  func checkpoint() throws {
    var topic = EngineTopic(row: StoredTopic(name: "t", settings: TopicSettings(), epoch: 1))
    topic.extent.firstOffset = 4
    topic.extent.head = 8
    topic.extent.bytesBefore = 40
    topic.extent.bytesThrough = 90
    topic.extent.lastTime = -3
    topic.floor = 17
    topic.last = 21
    for state in Self.change().states { topic.set(state) }
    let body = try Self.body(TopicCheckpoint(Self.id, topic).payloads(fence: 1, atMost: 64))
    let read = try #require(try body.withUnsafeBytes { try TopicCheckpoint($0) }.state)
    #expect(read.row == topic.row && read.extent == topic.extent)
    #expect(read.floor == 17 && read.last == 21)
    for kind in StoredState.Kind.allCases { #expect(read.states(kind) == topic.states(kind)) }
    let tombstone = try Self.body(TopicCheckpoint(Self.id, nil).payloads(fence: 1, atMost: 64))
    let deleted = try tombstone.withUnsafeBytes { try TopicCheckpoint($0) }
    #expect(deleted.topic == Self.id && deleted.state == nil)
  }

  @Test("whatever bytes a message has, reading it ends with what is in it or with an error")
  func damaged() throws {
    var random = SeededRandom.printed(for: "damaged")
    let change = try Self.body(
      Self.payloads(of: Self.change(), nil, atMost: 1 << 20))
    for count in 0..<change.count {
      #expect(throws: StoreError.self) { try change.prefix(count).withUnsafeBytes { try EngineChange($0) } }
    }
    for _ in 0..<5_000 {
      var bytes = change
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      try bytes.withUnsafeBytes { bytes in
        _ = try? EngineChange(bytes)
        _ = try? TopicCheckpoint(bytes)
        var reader = ByteReader(bytes)
        _ = try? EngineEnvelope(&reader)
        try #require(bytes.count == change.count)
      }
    }
  }
}

extension NATSMessage {
  /// A copy of the whole payload.
  fileprivate var wholePayload: [UInt8] {
    var (whole, place): ([UInt8], Int) = ([], 0)
    for insert in inserts {
      whole += payload[place..<insert.position]
      whole += insert.memory
      place = insert.position
    }
    return whole + payload[place...]
  }
}
