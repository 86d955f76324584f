import SluiceLog
import SluiceWire

/// Reads a log for somebody who wants only some of its records: finds the runs of those, and what is to be told of their times.
///
/// It belongs to one cursor of one log, and keeps nothing of the log alive. What isn't wanted costs no demand, so the cursor goes on without any up to the next
/// record that is.
struct FilteredReading {
  enum Step {
    /// A stretch of the log was looked through, or the most of it; so many bytes of it weren't handed over.
    case read(Segment, passed: Int)
    /// The record at the cursor is wanted, and nothing asked for.
    case starved(Segment, passed: Int)
    /// As the log says.
    case caughtUp
    case lagged(missed: UInt64)
  }

  let matcher: RecordMatcher
  private var time = MarkedTime()

  init(_ matcher: RecordMatcher) {
    self.matcher = matcher
  }

  /// Looks through the next records of `log`.
  ///
  /// - Parameters:
  ///   - records: the most to look at.
  ///   - bytes: about the most bytes to look at. At least one record is.
  ///   - demand: the most to hand over; ``Credit/unlimited`` for any number.
  ///   - largest: the most bytes of a run. A single record may be longer.
  ///   - take: is handed a run, and the time to tell before it, if any. Returns whether it takes more.
  mutating func read(
    _ log: TopicLog, at cursor: inout LogCursor, records: UInt64, bytes: Int, demand: UInt64, largest: Int,
    hint: Segment?, _ take: (LogSlice, _ mark: Int64?) -> Bool
  ) -> Step {
    switch log.next(&cursor, records: records, bytes: bytes, hint: hint) {
    case .caughtUp: return .caughtUp
    case .lagged(let missed): return .lagged(missed: missed)
    case .slice(let slice):
      if let mark = cursor.pendingTimeMark.take() { time.current = mark }
      var runs = unsafe MatchingRuns(slice.bytes, matcher, time: time)
      var left = demand
      var taken = 0
      var goesOn = true
      while goesOn, let run = runs.next(records: left, bytes: largest) {
        if left != Credit.unlimited { left -= UInt64(run.count) }
        taken += run.bytes.count
        goesOn = take(slice.part(run.bytes, firstRecord: run.firstRecord, count: run.count), run.mark)
      }
      time = runs.time
      let passed = runs.position - taken
      unsafe cursor.stepBack(records: slice.count - runs.records, bytes: slice.bytes.count - runs.position)
      let isStarved = goesOn && !runs.isAtEnd
      return isStarved ? .starved(slice.segment, passed: passed) : .read(slice.segment, passed: passed)
    }
  }
}

extension Subscription {
  /// As ``produce(into:bytes:)``, of records that a filter lets through.
  ///
  /// - Parameter bytes: about how many may be looked at, whether they are sent or not: so a filter that fits little doesn't keep the loop from the others.
  func produce(by reading: inout FilteredReading, into writes: WriteBatch, bytes: Int) -> Outcome {
    let log = epoch.log
    let largest = connection.largestBatch
    var budget = bytes
    while true {
      // As there: before the head is read.
      let isOver = epoch.condition != .open
      if let outcome = produceNewest(into: writes, &budget, reading.matcher) { return outcome }
      announceLive(writes)
      guard budget > 0, writes.hasRoom else { return .more }
      var tooLong: UInt64?
      let step = reading.read(
        log, at: &cursor, records: recordsToLive, bytes: budget, demand: credit.available, largest: largest,
        hint: hint()
      ) { run, mark in
        guard unsafe run.bytes.count <= largest else {
          tooLong = run.firstOffset
          return false
        }
        writes.appendSmall(run, mark: mark, stream: stream)
        unsafe spend(
          UInt64(run.count), bytes: run.bytes.count, through: run.firstOffset + UInt64(run.count))
        unsafe budget -= run.bytes.count
        return writes.hasRoom
      }
      if let tooLong { return tooLongForClient(tooLong, writes) }
      switch step {
      case .read(let segment, let passed), .starved(let segment, let passed):
        saw(segment)
        writes.passed(passed)
        budget -= passed
        if case .starved = step { return starved() }
      case .caughtUp:
        return isOver ? complete(writes) : .waiting
      case .lagged(let missed):
        if readNewest(insteadOf: missed) { continue }
        if let outcome = readStored(insteadOf: missed, writes) {
          if case .more = outcome { continue }
          return outcome
        }
        guard tellLag(missed, writes) else { return .ended }
      }
    }
  }
}
