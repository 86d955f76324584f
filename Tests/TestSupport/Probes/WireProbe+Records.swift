import SluiceWire

extension WireProbe {
  // MARK: Batches

  /// Decodes `bytes` as a batch with `count` records. Every receiver must be able to iterate a batch that the broker accepts.
  public static func batch(_ bytes: [UInt8], count: UInt32) throws {
    _ = try? walk(bytes, count: nil)
    let walked = try? walk(bytes, count: count)
    guard isValid(bytes, count: count) else { return }
    guard let walked, walked.records == Int(count) else {
      throw ProbeViolation("a valid batch can't be walked")
    }
    guard walked.longest <= maximumRecord, walked.areAttributesValid else {
      throw ProbeViolation("a valid batch has a record that isn't")
    }
  }

  private static func isValid(_ bytes: [UInt8], count: UInt32) -> Bool {
    let refusal = withExactMemory(bytes) { bytes -> WireError? in
      do throws(WireError) {
        try RecordLayout.validate(bytes, count: count, maximumRecord: maximumRecord)
        return nil
      } catch {
        return error
      }
    }
    return refusal == nil
  }

  private static func walk(
    _ bytes: [UInt8], count: UInt32?
  ) throws -> (records: Int, longest: Int, areAttributesValid: Bool) {
    try withExactMemory(bytes) { batch in
      var iterator = BatchIterator(batch, count: count, time: 0)
      var found = (records: 0, longest: 0, areAttributesValid: true)
      while let record = try iterator.next() {
        found.records += 1
        found.longest = max(found.longest, record.body.count)
        guard record.isAttributed else { continue }
        guard let attributes = try? RecordAttributes(record.body) else {
          found.areAttributesValid = false
          continue
        }
        var parts = (attributes.key?.count ?? 0) + attributes.payload.count
        attributes.forEachHeader { parts += $0.reduce(0) { sum, _ in sum + 1 } + $1.count }
        guard parts < record.body.count else {
          throw ProbeViolation("\(parts) bytes of parts in a body of \(record.body.count)")
        }
      }
      return found
    }
  }

  // MARK: Filters

  /// A record as seen by a receiver.
  private struct Item: Equatable {
    var number: Int
    var time: Int64?
    var body: [UInt8]
  }

  /// Finds the records that match a filter: one by one as a reader would, and in place as the broker does.
  ///
  /// The input consists of:
  /// - a `u16` length, and that many bytes of a filter as in SUBSCRIBE;
  /// - a bit for each of eight records, set if a time mark precedes it;
  /// - the most records and the most bytes of a run;
  /// - one byte for the number of records, then the batch.
  static func filter(_ input: inout ProbeInput) throws {
    let encoded = input.bytes(Int(input.integer(UInt16.self)))
    let front = Subscribe(topic: "", grantedThrough: 0).encoded(stream: 1).dropFirst(FrameHeader.size)
    guard
      let filter = try? withExactMemory(
        Array(front.dropLast(8)) + encoded, { try Subscribe(body: $0).filter })
    else { return }
    let marks = input.byte()
    let (mostRecords, mostBytes) = (UInt64(input.byte()), Int(input.byte()))
    let count = UInt32(input.byte())
    let batch = input.remaining()
    guard isValid(batch, count: count) else { return }
    let matcher = RecordMatcher(filter)
    let (wanted, stream) = try withExactMemory(batch) { try items($0, matcher, filter, marks: marks) }
    guard matcher.isEmpty == filter.isEmpty else { throw ProbeViolation("\(filter) isn't empty, or is") }
    try withExactMemory(stream) { stream in
      let runs = try Self.runs(stream, matcher, mostRecords: mostRecords, mostBytes: mostBytes)
      guard runs == (mostRecords == 0 ? [] : wanted) else {
        throw ProbeViolation("\(filter) should find \(wanted), and the runs have \(runs)")
      }
    }
  }

  /// The matching records, and all records with time marks in between.
  private static func items(
    _ batch: UnsafeRawBufferPointer, _ matcher: RecordMatcher, _ filter: RecordFilter, marks: UInt8
  ) throws -> (wanted: [Item], stream: [UInt8]) {
    var wanted: [Item] = []
    var stream: [UInt8] = []
    var time: Int64?
    var iterator = BatchIterator(batch, time: 0)
    var number = 0
    while let record = try iterator.next() {
      let end = record.body.baseAddress! + record.body.count
      let start = record.body.baseAddress! - RecordLayout.wordSize
      if number < 8, marks & 1 << UInt8(number) != 0 {
        var mark = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
        let now = Int64(1000 + number)
        mark.withUnsafeMutableBytes { RecordLayout.writeTimeMark(now, at: $0.baseAddress!) }
        stream += mark
        time = now
      }
      let item = UnsafeRawBufferPointer(start: start, count: end - start)
      stream += item
      let isWanted = try naive(filter, record)
      guard matcher.matches(item: item) == isWanted else {
        throw ProbeViolation("\(filter) is said to want record \(number): \(!isWanted)")
      }
      if isWanted { wanted.append(Item(number: number, time: time, body: Array(record.body))) }
      number += 1
    }
    return (wanted, stream)
  }

  private static func naive(_ filter: RecordFilter, _ record: BatchIterator.Record) throws -> Bool {
    guard record.isAttributed else { return filter.isEmpty }
    let attributes = try RecordAttributes(record.body)
    var headers: [(name: [UInt8], value: [UInt8])] = []
    attributes.forEachHeader { headers.append((Array($0), Array($1))) }
    return filter.conditions.allSatisfy { condition in
      let values: [[UInt8]] =
        switch condition.subject {
        case .key: attributes.key.map { [Array($0)] } ?? []
        case .header(let name): headers.filter { $0.name == Array(name.utf8) }.map(\.value)
        }
      return values.contains { value in
        switch condition.test {
        case .exists: true
        case .equals(let other): value == other
        case .hasPrefix(let prefix): value.starts(with: prefix)
        }
      }
    }
  }

  /// The records of all runs as seen by a receiver, with their times.
  private static func runs(
    _ stream: UnsafeRawBufferPointer, _ matcher: RecordMatcher, mostRecords: UInt64, mostBytes: Int
  ) throws -> [Item] {
    var items: [Item] = []
    var runs = MatchingRuns(stream, matcher, time: MarkedTime())
    var time: Int64?
    while let run = runs.next(records: mostRecords, bytes: mostBytes) {
      guard run.count > 0, UInt64(run.count) <= mostRecords, run.count == 1 || run.bytes.count <= mostBytes
      else {
        throw ProbeViolation("\(run) has more than \(mostRecords) records, or \(mostBytes) bytes")
      }
      if let mark = run.mark { time = mark }
      // Before the first mark there is no time, but the iterator requires one.
      var iterator = BatchIterator(
        UnsafeRawBufferPointer(rebasing: stream[run.bytes]), count: UInt32(run.count), time: time ?? -1)
      var number = run.firstRecord
      while let record = try iterator.next() {
        time = record.time == -1 ? nil : record.time
        items.append(Item(number: number, time: time, body: Array(record.body)))
        number += 1
      }
    }
    guard mostRecords == 0 || runs.isAtEnd else { throw ProbeViolation("the runs end in the middle") }
    return items
  }
}
