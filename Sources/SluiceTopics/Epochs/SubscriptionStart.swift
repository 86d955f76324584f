import SluiceLog
import SluiceWire

extension Subscribe {
  /// Returns the frame as if its client knew the epoch `current`, when that continues the epoch that the client knows.
  package func translated(to current: TopicEpoch) -> Subscribe {
    guard epoch != 0, epoch != current.number, case .offset(let offset) = start,
      let next = current.continuing(epoch, at: offset)
    else { return self }
    var frame = self
    frame.epoch = current.number
    frame.start = .offset(next)
    return frame
  }
}

extension StartPosition {
  package init(_ start: Subscribe.Start) {
    self =
      switch start {
      case .replay: .replay
      case .earliest: .earliest
      case .new: .new
      case .last(let count): .last(count)
      case .offset(let offset): .offset(offset)
      case .time(let time): .time(time)
      }
  }
}

extension TopicEpoch {
  /// Returns where a subscription begins, and how many of the records that it requests were dropped.
  ///
  /// - Parameters:
  ///   - reader: how the subscriber begins to read; nil to take it from the frame: a frame that names an epoch resumes.
  ///   - lag: the topic's policy for a subscriber that states none.
  ///   - buffered: the first record that producers published without subscribers, for the first one.
  /// - Throws: ``ErrorCode/epochChanged``, or ``ErrorCode/lagged``.
  package func start(
    _ frame: Subscribe, as reader: Reader? = nil, lag: Subscribe.LagPolicy?, buffered: UInt64?,
    wallClock: Int64
  ) throws(WireError) -> (cursor: LogCursor, missed: UInt64) {
    let frame = frame.translated(to: self)
    guard frame.epoch == 0 || frame.epoch == number else {
      throw WireError(
        .epochChanged,
        "topic \(frame.topic) was recreated; subscribe again without an epoch to get its present records")
    }
    var (cursor, missed) = cursor(
      at: StartPosition(frame.start), for: reader ?? (frame.epoch == 0 ? .late : .returning), now: wallClock)
    // Records that producers published while the topic had no subscriber go to the first one that replays or resumes.
    if let buffered, buffered < cursor.nextOffset {
      switch frame.start {
      case .replay, .earliest: cursor = self.cursor(at: .offset(buffered), for: .returning, now: nil).cursor
      case .offset(let offset) where frame.epoch != 0:
        cursor = self.cursor(at: .offset(max(offset, buffered)), for: .returning, now: nil).cursor
        missed = cursor.nextOffset - offset
      case .offset, .new, .last, .time: break
      }
    }
    guard missed == 0 || (frame.lag ?? lag) != .fail else {
      throw WireError(
        .lagged,
        "\(missed) records of \(frame.topic) were dropped already; subscribe to what is left, or with lag policy skip"
      )
    }
    return (cursor, missed)
  }
}
