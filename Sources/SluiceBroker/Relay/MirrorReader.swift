import SluiceLog
import SluiceTopics
import SluiceWire

/// A subscriber's position in a ``Mirror``. Belongs to its connection's loop.
struct MirrorReader {
  enum Outcome {
    case more
    /// Everything is sent.
    case waiting
    /// There are records, but no demand.
    case starved
    /// The last frame of the stream was written.
    case ended
    /// The mirror has dropped the next records.
    case behind
  }

  let mirror: Mirror
  let seat: MirrorSeat
  private var cursor: LogCursor
  /// The segment read last.
  private var hint: Segment?

  init(_ mirror: Mirror, _ seat: MirrorSeat, at offset: UInt64) {
    self.mirror = mirror
    self.seat = seat
    cursor = mirror.log.cursor(at: .offset(offset), from: 0).cursor
  }

  var nextOffset: UInt64 { cursor.nextOffset }
  var isBehind: Bool { nextOffset < mirror.log.head }

  /// Writes the next records, as far as there is demand.
  ///
  /// - Parameter largest: the longest batch that the client accepts, in bytes.
  mutating func produce(
    into writes: WriteBatch, bytes: Int, credit: inout Credit, stream: UInt32, largest: Int
  ) -> Outcome {
    if let hint, hint.isRetired { self.hint = nil }
    let start = writes.bytes
    while true {
      // Checked before the head is read: if the epoch has ended, the head is final.
      let isOver = mirror.epoch.condition != .open
      let fault = mirror.fault
      let left = bytes - (writes.bytes - start)
      guard left > 0, writes.hasRoom else { return .more }
      guard credit.available > 0 || !isBehind else { return end(with: fault, writes, stream) ?? .starved }
      let before = cursor
      switch mirror.log.next(&cursor, records: credit.available, bytes: min(left, largest), hint: hint) {
      case .slice(let slice):
        guard unsafe slice.bytes.count <= largest else {
          let message =
            "the record at offset \(slice.firstOffset) of \(mirror.topic) is longer than the client's frames may be"
          return end(with: Fault(code: .recordTooLarge, message: message), writes, stream) ?? .ended
        }
        hint = slice.segment
        writes.append(slice, mark: cursor.pendingTimeMark.take(), stream: stream)
        _ = credit.spend(UInt64(slice.count))
        mirror.advanced(to: cursor.nextOffset)
      case .caughtUp:
        if let ended = end(with: fault, writes, stream) { return ended }
        guard isOver, let ending = mirror.epoch.ending else { return .waiting }
        writes.append(Complete(ending), stream: stream)
        return .ended
      case .lagged:
        cursor = before
        return .behind
      }
    }
  }

  private func end(with fault: Fault?, _ writes: WriteBatch, _ stream: UInt32) -> Outcome? {
    guard let fault else { return nil }
    writes.append(fault, stream: stream)
    return .ended
  }
}
