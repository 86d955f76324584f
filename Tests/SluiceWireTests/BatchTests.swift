import SluiceWire
import TestSupport
import Testing

/// A record that a receiver has read, copied.
struct ReceivedRecord: Equatable {
  var time: Int64
  var body: [UInt8]
  var isAttributed = false
}

/// Walks a batch in memory of exactly its size.
func walk(
  _ batch: [UInt8], count: UInt32? = nil, time: Int64 = 0
) throws -> (records: [ReceivedRecord], time: Int64) {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: batch.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: batch)
  var iterator = BatchIterator(UnsafeRawBufferPointer(memory), count: count, time: time)
  var records: [ReceivedRecord] = []
  while let record = try iterator.next() {
    records.append(
      ReceivedRecord(time: record.time, body: Array(record.body), isAttributed: record.isAttributed))
  }
  return (records, iterator.time)
}

@Suite("Batch iterator")
struct BatchIteratorTests {
  @Test("gives records in order, with the time of the last mark before each")
  func records() throws {
    let batch = [UInt8](
      hex: """
        03000000 616263  00000000  08000080 0500000000000000  01000040 00
        08000080 ffffffffffffffff  08000080 0700000000000000  02000000 7879
        """)
    let (records, time) = try walk(batch, count: 4, time: 3)
    #expect(
      records == [
        ReceivedRecord(time: 3, body: [0x61, 0x62, 0x63]),
        ReceivedRecord(time: 3, body: []),
        ReceivedRecord(time: 5, body: [0], isAttributed: true),
        ReceivedRecord(time: 7, body: [0x78, 0x79]),
      ])
    #expect(time == 7)
  }

  @Test("an empty batch has no records, and a mark alone only a time")
  func empty() throws {
    #expect(try walk([], time: 9) == ([], 9))
    #expect(try walk([UInt8](hex: "08000080 0100000000000080"), time: 9) == ([], .min + 1))
    var iterator = BatchIterator(UnsafeRawBufferPointer(start: nil, count: 0), time: 1)
    #expect(try iterator.next() == nil)
  }

  @Test(
    "a batch that lies is malformed, after the records that were in order",
    arguments: [
      ("01000000 61 01", 1, "1 bytes are left where an item needs at least 4"),
      ("01000000 61 010000", 1, "3 bytes are left where an item needs at least 4"),
      ("01000000 61 02000000 61", 1, "an item announces 2 bytes where 1 are left"),
      ("ffffff3f", 0, "an item announces 1073741823 bytes where 0 are left"),
      ("ffffff7f 00", 0, "an item announces 1073741823 bytes where 1 are left"),
      ("000000c0", 0, "an item has kind 3, which isn't defined"),
      ("01000000 61 010000c0 61", 1, "an item has kind 3, which isn't defined"),
      ("07000080 00000000000000", 0, "a time mark has 7 bytes instead of 8"),
      ("09000080 000000000000000000", 0, "a time mark has 9 bytes instead of 8"),
      ("08000080 00000000", 0, "an item announces 8 bytes where 4 are left"),
    ])
  func lies(_ hex: String, _ inOrder: Int, _ message: String) {
    let batch = [UInt8](hex: hex)
    var given = 0
    #expect(throws: WireError(.malformedBatch, message)) {
      try batch.withUnsafeBytes { batch in
        var iterator = BatchIterator(batch, time: 0)
        while try iterator.next() != nil { given += 1 }
      }
    }
    #expect(given == inOrder)
  }

  @Test("never gives a record more than announced, and misses those that don't come")
  func counts() throws {
    let batch = [UInt8](hex: "08000080 0000000000000000 01000000 61 01000000 62")
    #expect(try walk(batch, count: 2).records.count == 2)
    #expect(throws: WireError(.malformedBatch, "the batch announces 3 records and has fewer")) {
      try walk(batch, count: 3)
    }
    #expect(throws: WireError(.malformedBatch, "the batch announces 4294967295 records and has fewer")) {
      try walk(batch, count: .max)
    }
    var given = 0
    #expect(throws: WireError(.malformedBatch, "the batch announces 1 records and has more")) {
      try batch.withUnsafeBytes { batch in
        var iterator = BatchIterator(batch, count: 1, time: 0)
        while try iterator.next() != nil { given += 1 }
      }
    }
    #expect(given == 1)
  }
}

@Suite("Batch builder")
struct BatchBuilderTests {
  private func builder(_ fill: (inout BatchBuilder) throws -> Void) rethrows -> BatchBuilder {
    var builder = BatchBuilder()
    try fill(&builder)
    return builder
  }

  @Test("records become exactly their bytes")
  func encoding() throws {
    let builder = try builder { builder in
      [UInt8]("abc".utf8).withUnsafeBytes { builder.append($0) }
      builder.append(UnsafeRawBufferPointer(start: nil, count: 0))
      try [UInt8]("k".utf8).withUnsafeBytes { key in
        try [UInt8]("p".utf8).withUnsafeBytes { payload in
          try builder.append(key: key, headers: [], payload: payload)
          try builder.append(key: nil, headers: [(name: [0x6E], value: [1, 2])], payload: payload)
          try builder.append(
            key: key, headers: [(name: [], value: []), (name: [0x6E], value: [])], payload: payload)
          try builder.append(key: nil, headers: [], payload: payload)
        }
      }
      try builder.append(
        key: UnsafeRawBufferPointer(start: nil, count: 0), headers: [],
        payload: UnsafeRawBufferPointer(start: nil, count: 0))
    }
    let expected = [UInt8](
      hex: """
        03000000 616263
        00000000
        05000040 01 0100 6b 70
        0d000040 02 0100 0100 6e 02000000 0102 70
        14000040 03 0100 6b 0200 0000 00000000 0100 6e 00000000 70
        01000000 70
        03000040 01 0000
        """)
    #expect(builder.bytes.hex == expected.hex)
    #expect(builder.count == 7)
    try builder.bytes.withUnsafeBytes { try RecordLayout.validate($0, count: 7, maximumRecord: 20) }
  }

  @Test("starts over with its memory")
  func removeAll() {
    var builder = BatchBuilder()
    #expect(builder.isEmpty)
    [UInt8](repeating: 1, count: 1000).withUnsafeBytes { builder.append($0) }
    #expect(!builder.isEmpty)
    let capacity = builder.bytes.capacity
    builder.removeAll()
    #expect(builder.isEmpty)
    #expect(builder.bytes.isEmpty)
    #expect(builder.bytes.capacity == capacity)
  }

  @Test("says the length of a body, and what is too long for one")
  func lengths() throws {
    let headers = [(name: [UInt8](repeating: 1, count: 3), value: [UInt8](repeating: 2, count: 5))]
    #expect(try BatchBuilder.bodyLength(key: nil, headers: [], payload: 10) == 10)
    #expect(try BatchBuilder.bodyLength(key: 0, headers: [], payload: 10) == 13)
    #expect(
      try BatchBuilder.bodyLength(key: 4, headers: headers, payload: 10) == 1 + 2 + 4 + 2 + 2 + 3 + 4 + 5 + 10
    )
    #expect(try BatchBuilder.bodyLength(key: nil, headers: [], payload: 0x3FFF_FFFF) == 0x3FFF_FFFF)
    #expect(try BatchBuilder.bodyLength(key: 65_535, headers: [], payload: 0) == 65_538)

    #expect(throws: WireError(.recordTooLarge, "the record has 1073741824 bytes; the limit is 1073741823")) {
      try BatchBuilder.bodyLength(key: nil, headers: [], payload: 0x4000_0000)
    }
    #expect(throws: WireError(.recordTooLarge, "the record's key has 65536 bytes; the limit is 65535")) {
      try BatchBuilder.bodyLength(key: 65_536, headers: [], payload: 0)
    }
    #expect(throws: WireError(.recordTooLarge, "the record has 65536 headers; the limit is 65535")) {
      try BatchBuilder.bodyLength(
        key: nil, headers: Array(repeating: (name: [], value: []), count: 65_536), payload: 0)
    }
    #expect(throws: WireError(.recordTooLarge, "a header's name has 65536 bytes; the limit is 65535")) {
      try BatchBuilder.bodyLength(
        key: nil, headers: [(name: [UInt8](repeating: 0, count: 65_536), value: [])], payload: 0)
    }
  }

  @Test("a record that is refused leaves the batch as it was")
  func refusedRecord() {
    var builder = BatchBuilder()
    [UInt8]("abc".utf8).withUnsafeBytes { builder.append($0) }
    let before = builder.bytes
    #expect(throws: WireError.self) {
      try [UInt8](repeating: 0, count: 65_536).withUnsafeBytes {
        try builder.append(key: $0, headers: [], payload: UnsafeRawBufferPointer(start: nil, count: 0))
      }
    }
    #expect(builder.bytes == before)
    #expect(builder.count == 1)
  }
}

@Suite("Batch validation")
struct BatchValidationTests {
  private func error(_ batch: [UInt8], count: UInt32, maximumRecord: Int) -> WireError? {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: batch.count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: batch)
    do throws(WireError) {
      try RecordLayout.validate(UnsafeRawBufferPointer(memory), count: count, maximumRecord: maximumRecord)
      return nil
    } catch {
      return error
    }
  }

  @Test(
    "takes batches that are what they say",
    arguments: [
      ("00000000", 1, 0),
      ("01000000 61", 1, 1),
      ("01000000 61 01000000 62 01000000 63", 3, 1),
      ("01000000 61 02000000 6262 00000000 03000000 636363", 4, 3),
      ("01000040 00", 1, 1),
      ("01000000 61 05000040 01 0100 6b 70 01000000 62 01000000 63", 4, 5),
    ])
  func valid(_ hex: String, _ count: UInt32, _ maximumRecord: Int) {
    #expect(error([UInt8](hex: hex), count: count, maximumRecord: maximumRecord) == nil)
  }

  @Test(
    "refuses batches that lie, and says which record",
    arguments: [
      ("", 1, "the batch announces 1 records and has 0"),
      ("01000000 61", 0, "a batch must have at least one record"),
      ("", 0, "a batch must have at least one record"),
      // Counts
      ("01000000 61", 2, "the batch announces 2 records and has 1"),
      ("01000000 61 01000000 62", 1, "the batch announces 1 records and has 2"),
      ("01000000 61", .max, "the batch announces 4294967295 records and has 1"),
      // Lengths
      ("61", 1, "the batch is cut short within record 0"),
      ("010000", 1, "the batch is cut short within record 0"),
      ("02000000 61", 1, "the batch is cut short within record 0"),
      ("01000000 61 01000000", 2, "the batch is cut short within record 1"),
      ("01000000 61 01000000 61 010000", 3, "the batch is cut short within record 2"),
      ("01000000 61 01000000 61 05000000 00", 3, "the batch is cut short within record 2"),
      ("00000000 00000000 0000", 3, "the batch is cut short within record 2"),
      ("01000000 61 02000040 00", 2, "the batch is cut short within record 1"),
      // Kinds
      (
        "01000000 61 08000080 0000000000000000", 2,
        "record 1 of the batch has kind 2, which producers may not send"
      ),
      ("000000c0", 1, "record 0 of the batch has kind 3, which producers may not send"),
      ("ffffffff", 1, "record 0 of the batch has kind 3, which producers may not send"),
      // Attributes
      ("01000040 04", 1, "record 0 of the batch: record flags 4 aren't defined"),
      (
        "00000000 00000040", 2,
        "record 1 of the batch: record flags is cut short: it needs 1 bytes where 0 are left"
      ),
      // The key would have enough bytes only with those of the next record.
      (
        "03000040 01 0200 02000000 6b6b", 2,
        "record 0 of the batch: record key is cut short: it needs 2 bytes where 0 are left"
      ),
    ])
  func lies(_ hex: String, _ count: UInt32, _ message: String) {
    #expect(
      error([UInt8](hex: hex), count: count, maximumRecord: 8) == WireError(.malformedBatch, message))
  }

  @Test("refuses a record beyond the limit, and takes one at it")
  func recordLimit() {
    let batch = [UInt8](hex: "03000000 616263 04000000 61626364")
    #expect(error(batch, count: 2, maximumRecord: 4) == nil)
    #expect(
      error(batch, count: 2, maximumRecord: 3)
        == WireError(.recordTooLarge, "record 1 of the batch has 4 bytes; the limit is 3"))
    #expect(
      error([UInt8](hex: "05000040 01 0100 6b 70"), count: 1, maximumRecord: 4)
        == WireError(.recordTooLarge, "record 0 of the batch has 5 bytes; the limit is 4"))
    // The length is also beyond the batch: the error for the limit comes first.
    #expect(error([UInt8](hex: "ffffff3f"), count: 1, maximumRecord: 8)?.code == .recordTooLarge)
    #expect(error([UInt8](hex: "ffffff7f"), count: 1, maximumRecord: 8)?.code == .recordTooLarge)
    // Limits that no record can reach, or that all exceed.
    #expect(error(batch, count: 2, maximumRecord: .max) == nil)
    #expect(
      error([UInt8](hex: "ffffff3f"), count: 1, maximumRecord: .max)?.message
        == "the batch is cut short within record 0")
    #expect(error(batch, count: 2, maximumRecord: -1)?.code == .recordTooLarge)
  }

  @Test("agrees with a walk over the same batch, whatever the lengths")
  func agreement() throws {
    var random = SeededRandom.printed(for: "batch validation")
    for _ in 0..<2000 {
      var batch: [UInt8] = []
      let count = UInt32.random(in: 1...20, using: &random)
      // Runs of one length and random lengths, which use different code.
      var length = 3
      for _ in 0..<count {
        if .random(using: &random) { length = .random(in: 0...9, using: &random) }
        batch += [UInt8(length), 0, 0, 0] + [UInt8](repeating: 0, count: length)
      }
      if .random(using: &random) {
        let index = Int.random(in: batch.indices, using: &random)
        batch[index] = .random(in: 0...5, using: &random)
      }
      let records = try? walk(batch).records
      let isValid = error(batch, count: count, maximumRecord: 1 << 20) == nil
      let isAllPlain = records?.allSatisfy { !$0.isAttributed } ?? false
      #expect(isValid == (isAllPlain && records?.count == Int(count)), "\(batch.hex), \(count)")
    }
  }
}
