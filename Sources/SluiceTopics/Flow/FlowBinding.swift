import SluiceWire

/// Identifies the subscriptions and groups whose limit stops a topic's producers, by the numbers from which the limit was computed.
///
/// Several subscriptions may have the same number; each of them makes the limit.
package struct FlowBinding: Hashable, Sendable {
  /// No more records are requested: the live subscriptions that have requested up to this offset.
  var askedThrough: UInt64?
  /// The topic's byte buffer is full: the live subscriptions that are sent this record next.
  package var nextOffset: UInt64?
  /// Records kept beyond the log's limits fill the byte buffer: the subscriptions that need this record.
  package var oldest: UInt64?
  /// The same for subscriptions that read the newest record of each key.
  package var newest: UInt64?

  /// How a subscription or group at `position` limits producers; nil when it doesn't.
  package func limit(of position: ReaderPosition) -> TopicInfo.HoldLimit? {
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

/// The position of a subscription or a group for flow control.
package struct ReaderPosition: Hashable, Sendable {
  /// The offset of the next record that it is sent.
  package var nextOffset: UInt64
  /// The offset up to which it has requested records; all ones for unlimited.
  var askedThrough: UInt64
  /// Whether it has caught up.
  package var isLive: Bool
  /// The first record that must be kept for it.
  package var oldest: UInt64
  /// The next offset of a subscription that reads the newest record of each key.
  package var readsNewestFrom: UInt64?
  var isGroup = false

  /// - Parameter available: how many more records it has requested; all ones for unlimited.
  package init(nextOffset: UInt64, available: UInt64, isLive: Bool) {
    self.nextOffset = nextOffset
    let end = nextOffset.addingReportingOverflow(available)
    askedThrough = end.overflow ? .max : end.partialValue
    self.isLive = isLive
    oldest = nextOffset
  }
}

/// How far producers may go, and the subscriptions and groups that make the limit.
package struct FlowBound: Hashable {
  package var limit: FlowLimit
  /// Nil while producers may publish, and when no subscription makes the limit.
  var binding: FlowBinding?

  init(_ limit: FlowLimit) { self.limit = limit }

  /// Producers are stopped by the subscriptions of `binding`.
  init(stoppedBy binding: FlowBinding) {
    limit = .none
    self.binding = binding
  }
}
