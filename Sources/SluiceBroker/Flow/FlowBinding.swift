import SluiceWire

/// Which subscriptions and groups make the limit that stops a topic's producers, in the numbers from which the limit was computed.
///
/// Several subscriptions may stand at the same number; each of them makes the limit.
struct FlowBinding: Hashable, Sendable {
  /// No more records are asked for: the live ones that have asked up to this offset.
  var askedThrough: UInt64?
  /// The topic's byte buffer is full: the live ones that are sent this record next.
  var nextOffset: UInt64?
  /// Records that are kept for one that is behind the log's limits fill the byte buffer: those that need this record.
  var oldest: UInt64?
  /// The same for those that read the newest record of each key.
  var newest: UInt64?

  /// What a subscription or group at `position` limits producers with; nil for one that doesn't.
  func limit(of position: ReaderPosition) -> TopicInfo.HoldLimit? {
    if position.isLive, askedThrough == position.askedThrough {
      return position.isGroup ? .groupDemand : .demand
    }
    if position.isLive, nextOffset == position.nextOffset || oldest == position.oldest {
      return position.isGroup ? .groupBuffer : .buffer
    }
    if let newest, position.readsNewestFrom == newest { return .replay }
    if let oldest, position.oldest == oldest { return position.isGroup ? .groupReplay : .replay }
    return nil
  }
}

/// Where one subscription, or one group, stands, as flow control sees it.
struct ReaderPosition: Hashable, Sendable {
  /// The offset of the record that it is sent next.
  var nextOffset: UInt64
  /// The offset up to which it has asked; all ones for unlimited.
  var askedThrough: UInt64
  /// Whether it has caught up.
  var isLive: Bool
  /// The first record that must be kept for it.
  var oldest: UInt64
  /// Of one that reads the newest record of each key.
  var readsNewestFrom: UInt64?
  var isGroup = false

  /// - Parameter available: how many more records it has asked for; all ones is unlimited.
  init(nextOffset: UInt64, available: UInt64, isLive: Bool) {
    self.nextOffset = nextOffset
    let end = nextOffset.addingReportingOverflow(available)
    askedThrough = end.overflow ? .max : end.partialValue
    self.isLive = isLive
    oldest = nextOffset
  }
}

/// How far producers may go, and the subscriptions and groups that make the limit.
struct FlowBound: Hashable {
  var limit: FlowLimit
  /// Nil where producers may go on, and where no subscription makes the limit.
  var binding: FlowBinding?

  init(_ limit: FlowLimit) { self.limit = limit }

  /// Producers are stopped by the subscriptions of `binding`.
  init(stoppedBy binding: FlowBinding) {
    limit = .none
    self.binding = binding
  }
}
