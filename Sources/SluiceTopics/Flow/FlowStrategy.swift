import SluiceWire

/// How far producers may go at this moment.
package enum FlowLimit: Hashable {
  /// Only their windows limit producers.
  case unlimited
  /// The records, and their bytes, that may be appended to the log; zero stops producers.
  case ahead(records: UInt64, bytes: UInt64)

  package static let none = FlowLimit.ahead(records: 0, bytes: 0)

  /// The limit with at most `limit` bytes.
  func capped(bytes limit: UInt64) -> FlowLimit {
    if limit == 0 { return .none }
    return switch self {
    case .unlimited: .ahead(records: .max, bytes: limit)
    case .ahead(let records, let bytes): .ahead(records: records, bytes: min(bytes, limit))
    }
  }
}

/// The state of the log from which a strategy computes its limit, besides the readers' positions.
package struct FlowSituation {
  /// The offset of the next record.
  package var head: UInt64
  /// The offset from which no subscriber has read; nil while the topic has subscribers.
  var unreadFrom: UInt64?
  /// Bytes of records that late subscribers can get.
  package var keptBytes: UInt64
  /// Bytes of records beyond the limits that are kept for subscribers that read the newest record of each key.
  var lapsedBytes: UInt64 = 0
  /// The bytes of records from an offset to the head.
  package var bytes: (_ offset: UInt64) -> UInt64
}

/// Decides how many records a topic's producers may publish. A stateless value: everything that changes is a parameter.
package protocol FlowStrategy: Sendable {
  /// The records and bytes that may be granted to all producers beyond the head. If there are none, also the subscriptions that stop producers.
  func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound

  /// The offset from which records must be kept, whatever the log's limits; nil for none.
  func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64?
}

extension FlowStrategy {
  package func limit(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowLimit {
    bound(readers, situation).limit
  }
}

/// Producers run ahead; the log drops records by its limits.
package struct FreeFlow: FlowStrategy {
  package func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound {
    FlowBound(.unlimited)
  }

  package func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64? { nil }
}

/// How far paced producers may run ahead of subscribers, and what they may do without any.
package struct FlowBuffer: Hashable, Sendable {
  package var records: UInt64
  /// At least 1. The last record may exceed the granted bytes, so a grant of one byte is a grant of one record: a setting of 0 bytes grants a record whenever
  /// subscribers have taken all earlier ones.
  package let bytes: UInt64
  var withoutSubscribers: TopicSettings.WhenAlone

  init(records: UInt64, bytes: UInt64, withoutSubscribers: TopicSettings.WhenAlone) {
    self.records = records
    self.bytes = max(bytes, 1)
    self.withoutSubscribers = withoutSubscribers
  }

  /// The limit while the topic has no subscribers.
  func limitWithoutSubscribers(_ situation: FlowSituation) -> FlowLimit {
    switch withoutSubscribers {
    case .drop: sliding
    case .hold: .none
    case .buffer:
      bound(takenThrough: situation.unreadFrom ?? 0, from: situation.unreadFrom ?? 0, situation).limit
    }
  }

  /// Producers continue in portions of the buffer, so that little is outstanding when they have to wait again.
  var sliding: FlowLimit { .ahead(records: max(records, 1), bytes: bytes) }

  /// The buffer beyond the demand in records, and beyond what subscribers have taken in bytes.
  ///
  /// - Parameters:
  ///   - takenThrough: the offset up to which there is demand; all ones for unlimited.
  ///   - from: the offset of the first record that takes up room.
  package func bound(takenThrough: UInt64, from: UInt64, _ situation: FlowSituation) -> FlowBound {
    let end = takenThrough.addingReportingOverflow(records)
    let through = end.overflow ? UInt64.max : end.partialValue
    let used = situation.bytes(from)
    guard through > situation.head, used < bytes else {
      return FlowBound(
        stoppedBy: FlowBinding(
          askedThrough: through > situation.head ? nil : takenThrough, nextOffset: used < bytes ? nil : from))
    }
    return FlowBound(.ahead(records: through - situation.head, bytes: bytes - used))
  }
}

/// Producers follow the slowest subscriber that has caught up.
///
/// A replaying subscriber doesn't limit producers while the log's limits keep what it has yet to read. Records beyond the limits are kept for it and
/// count towards the buffer.
package struct LosslessFlow: FlowStrategy {
  package var buffer: FlowBuffer

  package func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound {
    guard let oldest = readers.oldest else { return FlowBound(buffer.limitWithoutSubscribers(situation)) }
    let backlog = situation.bytes(oldest)
    guard backlog < situation.keptBytes || backlog - situation.keptBytes < buffer.bytes else {
      return FlowBound(stoppedBy: FlowBinding(oldest: oldest))
    }
    guard situation.lapsedBytes < buffer.bytes else {
      let newest = readers.readsNewestFrom
      return FlowBound(stoppedBy: newest.map { FlowBinding(newest: $0) } ?? FlowBinding(oldest: oldest))
    }
    guard let slowest = readers.caughtUp else { return FlowBound(buffer.sliding) }
    return buffer.bound(takenThrough: slowest.leastAsked, from: slowest.leastTaken, situation)
  }

  package func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64? {
    readers.oldest ?? (buffer.withoutSubscribers == .buffer ? unreadFrom : nil)
  }
}

/// Producers follow the fastest subscriber; the others may lag.
package struct FastestFlow: FlowStrategy {
  package var buffer: FlowBuffer

  package func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound {
    guard readers.oldest != nil else { return FlowBound(buffer.limitWithoutSubscribers(situation)) }
    guard let quickest = readers.caughtUp else { return FlowBound(buffer.sliding) }
    return buffer.bound(takenThrough: quickest.mostAsked, from: quickest.mostTaken, situation)
  }

  package func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64? {
    readers.oldest == nil && buffer.withoutSubscribers == .buffer ? unreadFrom : nil
  }
}

extension TopicSettings {
  /// The strategy that complete settings ask for.
  var strategy: any FlowStrategy {
    let buffer = FlowBuffer(
      records: bufferRecords ?? 0, bytes: bufferBytes ?? 0, withoutSubscribers: withoutSubscribers ?? .buffer)
    return switch flow ?? .free {
    case .free: FreeFlow()
    case .lossless: LosslessFlow(buffer: buffer)
    case .fastest: FastestFlow(buffer: buffer)
    }
  }
}
