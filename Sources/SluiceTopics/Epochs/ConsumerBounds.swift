import SluiceLog

/// The floors and the head of an epoch from which the lags of its durable cursors and groups are computed, read once for all of them.
struct ConsumerBounds {
  private let epoch: TopicEpoch
  private let floor: UInt64
  /// The floor of cursors and groups with a subscription or a member.
  private let attachedFloor: UInt64
  let head: UInt64

  init(_ epoch: TopicEpoch) {
    self.epoch = epoch
    floor = epoch.floor()
    attachedFloor = epoch.floor(for: .attached)
    head = epoch.log.head
  }

  /// The offset in this epoch of the next record that a cursor or group gets.
  ///
  /// - Parameters:
  ///   - offset: the next offset in the epoch of the cursor or group.
  ///   - number: the number of that epoch.
  ///   - isUsed: whether it has a subscription or a member.
  func next(_ offset: UInt64, in number: UInt64, isUsed: Bool) -> UInt64 {
    let next = number == epoch.number ? offset : epoch.continuing(number, at: offset) ?? 0
    return max(next, min(isUsed ? attachedFloor : floor, head))
  }

  /// The records from an offset of ``next(_:in:isUsed:)`` to the head.
  func lag(from next: UInt64) -> UInt64 { head - min(next, head) }
}
