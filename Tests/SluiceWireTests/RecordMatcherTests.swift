import SluiceWire
import TestSupport
import Testing

/// Whether a filter matches a record, and into which runs of records it divides a batch.
@Suite("Record matcher")
struct RecordMatcherTests {
  struct Case: CustomStringConvertible, Sendable {
    var conditions: [RecordFilter.Condition]
    var key: String?
    var headers: [(String, String)] = []
    var isWanted: Bool

    var description: String { "\(conditions) of \(key ?? "no key"), \(headers)" }
  }

  private static func text(_ string: String) -> [UInt8] { Array(string.utf8) }

  private static let key = RecordFilter.Condition(.key, .exists)
  private static func key(_ value: String) -> RecordFilter.Condition { .init(.key, .equals(text(value))) }
  private static func key(prefix: String) -> RecordFilter.Condition { .init(.key, .hasPrefix(text(prefix))) }
  private static func header(_ name: String) -> RecordFilter.Condition { .init(.header(name), .exists) }
  private static func header(_ name: String, _ value: String) -> RecordFilter.Condition {
    .init(.header(name), .equals(text(value)))
  }
  private static func header(_ name: String, prefix: String) -> RecordFilter.Condition {
    .init(.header(name), .hasPrefix(text(prefix)))
  }

  private static let long = String(repeating: "0123456789", count: 7)

  static let table: [Case] = [
    Case(conditions: [], isWanted: true),
    Case(conditions: [], key: "a", isWanted: true),
    // Keys. An empty key also counts as one.
    Case(conditions: [key], isWanted: false),
    Case(conditions: [key], headers: [("a", "b")], isWanted: false),
    Case(conditions: [key], key: "", isWanted: true),
    Case(conditions: [key("")], key: "", isWanted: true),
    Case(conditions: [key("")], isWanted: false),
    Case(conditions: [key("a")], key: "", isWanted: false),
    Case(conditions: [key("eu.1")], key: "eu.1", isWanted: true),
    Case(conditions: [key("eu.1")], key: "eu.2", isWanted: false),
    Case(conditions: [key("eu.1")], key: "eu.11", isWanted: false),
    Case(conditions: [key("eu.11")], key: "eu.1", isWanted: false),
    Case(conditions: [key(prefix: "eu.")], key: "eu.1", isWanted: true),
    Case(conditions: [key(prefix: "eu.")], key: "eu.", isWanted: true),
    Case(conditions: [key(prefix: "eu.")], key: "eu", isWanted: false),
    Case(conditions: [key(prefix: "eu.")], key: "us.1", isWanted: false),
    Case(conditions: [key(prefix: "")], key: "", isWanted: true),
    Case(conditions: [key(prefix: "")], isWanted: false),
    Case(conditions: [key(long)], key: long, isWanted: true),
    Case(conditions: [key(long)], key: String(long.dropLast()) + "X", isWanted: false),
    Case(conditions: [key(prefix: long)], key: long + "more", isWanted: true),
    Case(conditions: [key(prefix: "eu."), key(prefix: "eu.1")], key: "eu.12", isWanted: true),
    Case(conditions: [key(prefix: "eu."), key("us.1")], key: "us.1", isWanted: false),
    // Headers, of which one match is enough.
    Case(conditions: [header("type")], isWanted: false),
    Case(conditions: [header("type")], key: "type", isWanted: false),
    Case(conditions: [header("type")], headers: [("type", "")], isWanted: true),
    Case(conditions: [header("type")], headers: [("typ", ""), ("types", "")], isWanted: false),
    Case(conditions: [header("")], headers: [("", "x")], isWanted: true),
    Case(conditions: [header("type", "")], headers: [("type", "")], isWanted: true),
    Case(conditions: [header("type", "new")], headers: [("type", "new")], isWanted: true),
    Case(conditions: [header("type", "new")], headers: [("Type", "new")], isWanted: false),
    Case(conditions: [header("type", "new")], headers: [("new", "type")], isWanted: false),
    Case(conditions: [header("type", "new")], headers: [("type", "old"), ("type", "new")], isWanted: true),
    Case(conditions: [header("type", "new")], headers: [("type", "newer")], isWanted: false),
    Case(conditions: [header("type", prefix: "new")], headers: [("type", "newer")], isWanted: true),
    Case(conditions: [header(long, prefix: long)], headers: [(long, long + "!")], isWanted: true),
    Case(
      conditions: [header("a", "1"), header("b", "2")], headers: [("b", "2"), ("c", "3"), ("a", "1")],
      isWanted: true),
    Case(
      conditions: [header("a", "1"), header("b", "2")], headers: [("a", "1"), ("b", "3")], isWanted: false),
    Case(
      conditions: [header("a", "1"), header("a", "2")], headers: [("a", "1"), ("a", "2")], isWanted: true),
    Case(conditions: [header("a", "1"), header("a", "2")], headers: [("a", "1")], isWanted: false),
    // Both.
    Case(conditions: [header("a"), key("k")], key: "k", headers: [("a", "")], isWanted: true),
    Case(conditions: [header("a"), key("k")], key: "x", headers: [("a", "")], isWanted: false),
    Case(conditions: [header("a"), key("k")], key: "k", isWanted: false),
    Case(
      conditions: Array(repeating: header("a"), count: 15) + [key], key: "k", headers: [("a", "")],
      isWanted: true),
    Case(
      conditions: (0..<16).map { header("\($0)") }, headers: (0..<16).reversed().map { ("\($0)", "") },
      isWanted: true),
    Case(
      conditions: (0..<16).map { header("\($0)") }, headers: (0..<15).map { ("\($0)", "") }, isWanted: false),
  ]

  @Test("all conditions must hold", arguments: table)
  func matches(one: Case) throws {
    var batch = BatchBuilder()
    try Self.append(
      key: one.key.map(Self.text), headers: one.headers.map { (Self.text($0), Self.text($1)) },
      payload: [1, 2], to: &batch)
    #expect(Self.wanted(RecordFilter(one.conditions), in: batch) == (one.isWanted ? [0] : []))
  }

  // MARK: Random

  struct Made {
    var key: [UInt8]?
    var headers: [(name: [UInt8], value: [UInt8])]
  }

  private static let texts = ["", "a", "b", "ab", "abc", "abcdefgh", "abcdefghi", "abcdefgx"].map(text)

  private static func record(_ random: inout SeededRandom) -> Made {
    Made(
      key: Bool.random(using: &random) ? texts.randomElement(using: &random) : nil,
      headers: (0..<Int.random(in: 0...3, using: &random)).map { _ in
        (texts.randomElement(using: &random)!, texts.randomElement(using: &random)!)
      })
  }

  private static func filter(_ random: inout SeededRandom) -> RecordFilter {
    RecordFilter(
      (0..<Int.random(in: 0...3, using: &random)).map { _ in
        let value = texts.randomElement(using: &random)!
        let name = String(decoding: texts.randomElement(using: &random)!, as: UTF8.self)
        let tests: [RecordFilter.Test] = [.exists, .equals(value), .hasPrefix(value)]
        return RecordFilter.Condition(
          Bool.random(using: &random) ? .key : .header(name), tests.randomElement(using: &random)!)
      })
  }

  private static func naive(_ filter: RecordFilter, _ record: Made) -> Bool {
    func holds(_ test: RecordFilter.Test, _ value: [UInt8]) -> Bool {
      switch test {
      case .exists: true
      case .equals(let wanted): value == wanted
      case .hasPrefix(let prefix): value.starts(with: prefix)
      }
    }
    return filter.conditions.allSatisfy { condition in
      switch condition.subject {
      case .key: record.key.map { holds(condition.test, $0) } ?? false
      case .header(let name):
        record.headers.contains { $0.name == text(name) && holds(condition.test, $0.value) }
      }
    }
  }

  /// The joined runs are the matching records, each with its time, in as few parts as the limits allow.
  @Test func runsOfRandomBatchesAreTheWantedRecords() throws {
    var random = SeededRandom.printed()
    for _ in 0..<2_000 {
      let filter = Self.filter(&random)
      var items: [UInt8] = []
      var time: Int64 = 100
      var wanted: [(index: Int, time: Int64, item: [UInt8])] = []
      items += Self.mark(time)
      for index in 0..<Int.random(in: 0...40, using: &random) {
        while Int.random(in: 0..<5, using: &random) == 0 {
          time += 1
          items += Self.mark(time)
        }
        let made = Self.record(&random)
        var batch = BatchBuilder()
        let payload = [UInt8](repeating: 7, count: Int.random(in: 0...20, using: &random))
        try Self.append(key: made.key, headers: made.headers, payload: payload, to: &batch)
        items += batch.bytes
        if Self.naive(filter, made) { wanted.append((index, time, batch.bytes)) }
      }
      let most = UInt64.random(in: 1...10, using: &random)
      let bytes = Int.random(in: 1...200, using: &random)
      try Self.check(items, filter, wanted, most: most, bytes: bytes)
    }
  }

  private static func check(
    _ items: [UInt8], _ filter: RecordFilter, _ wanted: [(index: Int, time: Int64, item: [UInt8])],
    most: UInt64, bytes: Int
  ) throws {
    try items.withUnsafeBytes { items in
      var runs = MatchingRuns(items, RecordMatcher(filter), time: MarkedTime())
      var found: [(index: Int, time: Int64, item: [UInt8])] = []
      var told: Int64?
      var last: (end: Int, count: Int, start: Int)?
      // Without demand it advances to the first matching record.
      #expect(runs.next(records: 0, bytes: bytes) == nil)
      #expect(runs.isAtEnd == wanted.isEmpty)
      while let run = runs.next(records: most, bytes: bytes) {
        #expect(run.count >= 1 && UInt64(run.count) <= most)
        #expect(run.bytes.count <= bytes || run.count == 1)
        if let mark = run.mark { told = mark }
        var iterator = BatchIterator(
          UnsafeRawBufferPointer(rebasing: items[run.bytes]), count: UInt32(run.count), time: told ?? .min)
        var index = run.firstRecord
        if let last, last.end == index {
          // Two runs are adjacent only if the first was full.
          #expect(UInt64(last.count) == most || run.bytes.upperBound - last.start > bytes)
        }
        last = (index + run.count, run.count, run.bytes.lowerBound)
        while let record = try iterator.next() {
          let word = RecordLayout.word(record.isAttributed ? .attributed : .plain, length: record.body.count)
          found.append((index, record.time, withUnsafeBytes(of: word.littleEndian, Array.init) + record.body))
          index += 1
        }
        told = iterator.time
      }
      #expect(runs.isAtEnd)
      #expect(found.map(\.index) == wanted.map(\.index))
      #expect(found.map(\.time) == wanted.map(\.time))
      #expect(found.map(\.item) == wanted.map(\.item))
    }
  }

  // MARK: Support

  private static func append(
    key: [UInt8]?, headers: [(name: [UInt8], value: [UInt8])], payload: [UInt8], to batch: inout BatchBuilder
  ) throws {
    try payload.withUnsafeBytes { payload in
      if let key {
        try key.withUnsafeBytes { try batch.append(key: $0, headers: headers, payload: payload) }
      } else {
        try batch.append(key: nil, headers: headers, payload: payload)
      }
    }
  }

  private static func mark(_ time: Int64) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
    bytes.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
    return bytes
  }

  /// The wanted records of a batch, by their indices.
  private static func wanted(_ filter: RecordFilter, in batch: BatchBuilder) -> [Int] {
    batch.bytes.withUnsafeBytes { bytes in
      var runs = MatchingRuns(bytes, RecordMatcher(filter), time: MarkedTime())
      var found: [Int] = []
      while let run = runs.next(records: .max, bytes: .max) {
        found += run.firstRecord..<run.firstRecord + run.count
      }
      return found
    }
  }
}
