/// The time marks of a stretch of records and of the receiver's stream, for a sender that sends only a part of them.
public struct MarkedTime: Hashable, Sendable {
  /// The time of the last mark that was passed; nil before the first.
  public var current: Int64?
  /// The last time that was sent to the receiver.
  public var told: Int64?

  public init() {}
}

/// Walks a stretch of checked items and finds runs of matching records without a gap, each of which can be sent unchanged as one batch.
///
/// Valid only as long as the memory it was made from.
@safe
public struct MatchingRuns {
  public struct Run {
    /// Bytes of the items, within the stretch. They begin and end with a record.
    public let bytes: Range<Int>
    /// Records of the stretch before the first of these.
    public let firstRecord: Int
    /// At least 1.
    public let count: Int
    /// The time of the first record, if it has to be sent to the receiver.
    public let mark: Int64?
  }

  private let items: UnsafeRawBufferPointer
  private let matcher: RecordMatcher
  /// Its position: every item before it is in a found run or doesn't match.
  public private(set) var position = 0
  /// Records before that place.
  public private(set) var records = 0
  public private(set) var time: MarkedTime

  /// - Parameters:
  ///   - items: records and time marks; must stay as they are for as long as this is used.
  ///   - matcher: says which records are wanted.
  ///   - time: as it is at their beginning.
  public init(_ items: UnsafeRawBufferPointer, _ matcher: RecordMatcher, time: MarkedTime) {
    unsafe self.items = unsafe items
    self.matcher = matcher
    self.time = time
  }

  /// Whether all items were examined.
  public var isAtEnd: Bool { unsafe position == items.count }

  /// The next run; nil at the end.
  ///
  /// - Parameters:
  ///   - limit: the most records of it. With 0 there is none, but everything is passed by up to the next record that is wanted.
  ///   - bytes: the most bytes of it; one record comes, however long.
  public mutating func next(records limit: UInt64, bytes: Int) -> Run? {
    guard let base = unsafe items.baseAddress else { return nil }
    while unsafe position < items.count {
      let word = unsafe RecordLayout.word(at: base + position)
      guard RecordLayout.isRecord(word) else {
        unsafe passMark(base)
        continue
      }
      if unsafe matches(word, base) {
        return unsafe limit > 0 ? run(base, records: limit, bytes: bytes) : nil
      }
      pass(word)
    }
    return nil
  }

  /// The run that begins here.
  private mutating func run(_ base: UnsafeRawPointer, records limit: UInt64, bytes: Int) -> Run {
    let (start, first) = (position, records)
    let mark = time.current == time.told ? nil : time.current
    unsafe pass(RecordLayout.word(at: base + position))
    time.told = time.current
    var end = position
    while unsafe position < items.count, UInt64(records &- first) < limit {
      let word = unsafe RecordLayout.word(at: base + position)
      guard RecordLayout.isRecord(word) else {
        unsafe passMark(base)
        continue
      }
      guard position &+ Self.size(word) &- start <= bytes else { break }
      let isWanted = unsafe matches(word, base)
      if !isWanted {
        let run = Run(bytes: start..<end, firstRecord: first, count: records &- first, mark: mark)
        pass(word)
        return run
      }
      pass(word)
      time.told = time.current
      end = position
    }
    return Run(bytes: start..<end, firstRecord: first, count: records &- first, mark: mark)
  }

  @inline(__always)
  private func matches(_ word: UInt32, _ base: UnsafeRawPointer) -> Bool {
    unsafe matcher.matches(RecordLayout.kind(word), base + position + RecordLayout.wordSize)
  }

  @inline(__always)
  private mutating func pass(_ word: UInt32) {
    position &+= Self.size(word)
    records &+= 1
  }

  private mutating func passMark(_ base: UnsafeRawPointer) {
    time.current = unsafe Int64(
      littleEndian: (base + position + RecordLayout.wordSize).loadUnaligned(as: Int64.self))
    position &+= RecordLayout.timeMarkSize
  }

  @inline(__always)
  private static func size(_ word: UInt32) -> Int { RecordLayout.wordSize &+ RecordLayout.length(word) }
}
