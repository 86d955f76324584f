/// The clock of a topic's records: which time the next record gets, and how old those are whose times are ahead of the clock.
///
/// ```
///   offset ──►   0 ........ 40 | 41 .............. head
///   times        12:05 … 12:10 | 12:00 … 12:08
///                              setback: the clock was 12:00 again
/// ```
///
/// A record's time is the clock's, raised to that of the previous record by at most ``step``. Event loops read the clock at the start of their turns, so
/// one may be slightly behind another. A clock that is further behind was set back. Times follow it, and the setback is kept: the records before it were
/// appended by then, whatever their times say, so they expire by age as if they had that time.
public struct RecordClock: Hashable, Sendable {
  /// The most milliseconds by which the order of records raises a time.
  public static let step: Int64 = 1_000
  /// The most setbacks that are kept. Without the oldest one, the records before it count as those before the next one.
  public static let mostSetbacks = 64

  /// A moment in which the clock was found to be set back.
  public struct Setback: Hashable, Sendable {
    /// The offset of the first record behind it.
    public var offset: UInt64
    /// The latest time of the records between the setback before and this one.
    public var latest: Int64
    /// The time to which the clock was set back.
    public var time: Int64

    public init(offset: UInt64, latest: Int64, time: Int64) {
      self.offset = offset
      self.latest = latest
      self.time = time
    }
  }

  /// The time below which the next record's isn't, unless the clock is set back. The least number before the first record.
  public private(set) var recordTime: Int64
  /// The latest time that was passed; never back by ``step`` or less. The least number before the first time.
  public private(set) var now: Int64
  /// In the order of their offsets.
  public private(set) var setbacks: [Setback]

  /// The clock of a topic without records.
  public init() { self.init(restoring: [], lastTime: .min, head: 0) }

  /// The clock of a topic with records.
  ///
  /// - Parameters:
  ///   - setbacks: those that are known.
  ///   - lastTime: the time of the last record; the least number when there is none.
  ///   - head: the offset of the next record.
  public init(restoring setbacks: [Setback], lastTime: Int64, head: UInt64) {
    self.setbacks = setbacks
    // No record may be behind the last of them yet.
    recordTime = setbacks.last.flatMap { $0.offset == head ? $0.time : nil } ?? lastTime
    now = recordTime
  }

  /// Whether the clock is set back if that is the present time.
  @inline(__always)
  public func isSetBack(to time: Int64) -> Bool { time < now && Self.isBehind(time, now) }

  /// Takes the present time.
  ///
  /// - Parameters:
  ///   - time: in milliseconds since 1970.
  ///   - head: the offset of the next record.
  /// - Returns: whether the clock was set back behind the times of records.
  @discardableResult
  @inline(__always)
  public mutating func tell(_ time: Int64, head: UInt64) -> Bool {
    if time >= now {
      now = time
      return false
    }
    return fallBack(to: time, head)
  }

  @inline(never)
  private mutating func fallBack(to time: Int64, _ head: UInt64) -> Bool {
    guard Self.isBehind(time, now) else { return false }
    now = time
    guard Self.isBehind(time, recordTime) else { return false }
    if let last = setbacks.last, last.offset == head {
      setbacks[setbacks.count - 1].time = time
    } else {
      if setbacks.count >= Self.mostSetbacks { setbacks.removeFirst() }
      setbacks.append(Setback(offset: head, latest: recordTime, time: time))
    }
    recordTime = time
    return true
  }

  /// Whether a time is behind another one by more than the order of records allows for.
  private static func isBehind(_ time: Int64, _ other: Int64) -> Bool {
    let (limit, overflow) = other.subtractingReportingOverflow(step)
    return !overflow && time < limit
  }

  /// Takes the present time, at which records are appended, and returns their time.
  @inline(__always)
  public mutating func append(at time: Int64, head: UInt64) -> Int64 {
    tell(time, head: head)
    recordTime = max(recordTime, time)
    return recordTime
  }

  // MARK: Ages

  /// The time from which a record's age counts: its own, or that of a later setback if that is less.
  ///
  /// - Parameters:
  ///   - time: the record's, or the latest of several.
  ///   - end: the offset behind it, or behind the last of them.
  @inline(__always)
  public func time(_ time: Int64, before end: UInt64) -> Int64 {
    setbacks.isEmpty ? time : setbacks.reduce(time) { $1.offset >= end ? min($0, $1.time) : $0 }
  }

  /// The offset before which all records are older than a time because of setbacks, whatever their times are; 0 without such setbacks.
  public func outdated(before time: Int64) -> UInt64 {
    setbacks.last { $0.time < time }?.offset ?? 0
  }

  /// Forgets the setbacks that no record from an offset on is in front of.
  public mutating func forget(before offset: UInt64) {
    if let first = setbacks.first, first.offset <= offset { setbacks.removeAll { $0.offset <= offset } }
  }

  // MARK: Times

  /// The latest time of a record from an offset on.
  public func latest(from offset: UInt64) -> Int64 {
    setbacks.reduce(recordTime) { $1.offset > offset ? max($0, $1.latest) : $0 }
  }

  /// The offsets between which the first record with a time or a later one is, if there is one: there, times don't go back.
  ///
  /// - Parameters:
  ///   - time: in milliseconds since 1970.
  ///   - oldest: the offset of the first record that there is.
  public func span(of time: Int64, from oldest: UInt64) -> Range<UInt64> {
    var low: UInt64 = 0
    for setback in setbacks where setback.offset > oldest {
      if setback.latest >= time { return low..<setback.offset }
      low = setback.offset
    }
    return low..<UInt64.max
  }
}
