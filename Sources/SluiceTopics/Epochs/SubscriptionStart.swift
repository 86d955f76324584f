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
