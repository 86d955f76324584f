import SluiceWire

/// Consecutive encoded records. Places count from the first byte that was ever appended, so they stay valid when the front is removed.
struct RecordStore {
  private var bytes: [UInt8] = []
  /// The place of the first byte.
  private var base = 0

  /// Up to this size, an empty store keeps its memory, and a front stays rather than moving the bytes behind it.
  private static let keptCapacity = 256 << 10

  var end: Int { base + bytes.count }

  /// Lets `body` append a record. Returns its length.
  mutating func append(_ body: (inout [UInt8]) -> Void) -> Int {
    let before = bytes.count
    body(&bytes)
    return bytes.count - before
  }

  func copy(_ range: Range<Int>, to output: inout [UInt8]) {
    unsafe bytes.withUnsafeBytes {
      unsafe output.append(contentsOf: $0[(range.lowerBound - base)..<(range.upperBound - base)])
    }
  }

  /// The place of the record behind the one at `place`.
  func next(_ place: Int) -> Int {
    unsafe bytes.withUnsafeBytes {
      unsafe place + RecordLayout.wordSize
        + RecordLayout.length(RecordLayout.word(at: $0.baseAddress! + (place - base)))
    }
  }

  /// Cuts the `count` records between two places to at most `records` and about `limit` bytes, but at least one record.
  func cut(from start: Int, to end: Int, of count: UInt64, records: UInt64, bytes limit: Int)
    -> (count: UInt64, end: Int)
  {
    if count <= records, end - start <= limit { return (count, end) }
    var place = start
    var taken: UInt64 = 0
    unsafe bytes.withUnsafeBytes { all in
      let first = unsafe all.baseAddress! - base
      while taken < min(records, count) {
        let next =
          unsafe place + RecordLayout.wordSize + RecordLayout.length(RecordLayout.word(at: first + place))
        guard next - start <= limit || taken == 0 else { break }
        place = next
        taken += 1
      }
    }
    return (taken, place)
  }

  /// Removes the records before `place`.
  mutating func forget(before place: Int) {
    let count = place - base
    if count == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
      base = place
    } else if count > Self.keptCapacity, count * 2 > bytes.count {
      bytes.removeSubrange(..<count)
      base = place
    }
  }
}

/// Records that were sent and aren't acknowledged, in runs that were sent together.
struct Flight {
  struct Run: Equatable {
    /// The places in the ``RecordStore``.
    var start: Int
    var end: Int
    var count: UInt64
    /// The sequence behind the last record.
    var through: UInt64

    var first: UInt64 { through - count }
  }

  /// Sent on the current stream.
  var sent = Queue<Run>()
  /// Sent on an earlier stream, and to be sent again. Behind the others.
  private(set) var again = Queue<Run>()
  /// The size of both.
  var byteCount = 0

  var start: Int? { sent.first?.start ?? again.first?.start }

  /// Moves all records to those to be sent again, because the stream has ended.
  mutating func interrupt() {
    while let run = again.popFirst() { sent.append(run) }
    swap(&sent, &again)
  }

  /// Removes all records before that sequence, which the broker has received. A run that is only partly acknowledged stays whole on the current stream, and
  /// is cut if it must be sent again.
  mutating func acknowledge(through sequence: UInt64, _ store: RecordStore) {
    while let run = sent.first, run.through <= sequence {
      sent.removeFirst()
      byteCount -= run.end - run.start
    }
    guard sent.isEmpty else { return }
    while var run = again.first, run.first < sequence {
      if run.through <= sequence {
        again.removeFirst()
        byteCount -= run.end - run.start
        continue
      }
      let before = run.start
      while run.first < sequence {
        run.start = store.next(run.start)
        run.count -= 1
      }
      byteCount -= run.start - before
      again.first = run
    }
  }

  /// Takes the next run to be sent again, or the part within the limits, and counts it as sent.
  mutating func resend(_ store: RecordStore, records: UInt64, bytes: Int) -> Run? {
    guard var run = again.first else { return nil }
    let cut = store.cut(from: run.start, to: run.end, of: run.count, records: records, bytes: bytes)
    let part = Run(start: run.start, end: cut.end, count: cut.count, through: run.first + cut.count)
    if cut.count == run.count {
      again.removeFirst()
    } else {
      run.start = cut.end
      run.count -= cut.count
      again.first = run
    }
    sent.append(part)
    return part
  }
}
