import SluiceWire

/// How far producers may go at this moment.
enum FlowLimit: Hashable {
  /// As far as their windows reach.
  case unlimited
  /// No further than so many records, and so many bytes of them, beyond what is in the log; zero holds them.
  case ahead(records: UInt64, bytes: UInt64)

  static let none = FlowLimit.ahead(records: 0, bytes: 0)

  /// No more than that, and no more bytes than those.
  func capped(bytes limit: UInt64) -> FlowLimit {
    if limit == 0 { return .none }
    return switch self {
    case .unlimited: .ahead(records: .max, bytes: limit)
    case .ahead(let records, let bytes): .ahead(records: records, bytes: min(bytes, limit))
    }
  }
}

/// What a strategy goes by, besides the readers: a few questions about the log.
struct FlowSituation {
  /// The offset that the next record will get.
  var head: UInt64
  /// Where the topic's last subscriber was when it left; nil while there are subscribers.
  var unreadFrom: UInt64?
  /// Bytes of records that late subscribers can get.
  var keptBytes: UInt64
  /// Bytes of records that they can't get any more, and that are kept for those who read the newest of each key.
  var lapsedBytes: UInt64 = 0
  /// Bytes of records from an offset to the head.
  var bytes: (_ offset: UInt64) -> UInt64
}

/// A topic's answer to how much its producers are asked for. A value without state: everything that changes comes in.
protocol FlowStrategy: Sendable {
  /// What producers may be granted in all, beyond the head, and which subscriptions stop them where that is nothing.
  func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound

  /// The offset from which on records must be kept whatever the limits of the log; nil for none.
  func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64?
}

extension FlowStrategy {
  func limit(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowLimit {
    bound(readers, situation).limit
  }
}

/// Producers run ahead: the log's limits decide what is dropped.
struct FreeFlow: FlowStrategy {
  func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound { FlowBound(.unlimited) }

  func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64? { nil }
}

/// How far producers that wait for subscribers may run ahead of them, and what they do without any.
struct FlowBuffer: Hashable, Sendable {
  var records: UInt64
  /// At least 1. A grant of one byte is a grant of one record, since the last record may exceed the bytes granted: a buffer of 0 bytes grants a record
  /// whenever subscribers have taken all before it.
  let bytes: UInt64
  var withoutSubscribers: TopicSettings.WhenAlone

  init(records: UInt64, bytes: UInt64, withoutSubscribers: TopicSettings.WhenAlone) {
    self.records = records
    self.bytes = max(bytes, 1)
    self.withoutSubscribers = withoutSubscribers
  }

  /// What producers may do while nobody listens.
  func limitWithoutSubscribers(_ situation: FlowSituation) -> FlowLimit {
    switch withoutSubscribers {
    case .drop: sliding
    case .hold: .none
    case .buffer:
      bound(takenThrough: situation.unreadFrom ?? 0, from: situation.unreadFrom ?? 0, situation).limit
    }
  }

  /// Producers go on as they like, in portions of the buffer, so that none has far to go when there is something to wait for again.
  var sliding: FlowLimit { .ahead(records: max(records, 1), bytes: bytes) }

  /// The buffer beyond what is asked for, in records, and beyond what has been taken, in bytes.
  ///
  /// - Parameters:
  ///   - takenThrough: the offset up to which there is demand; all ones for unlimited.
  ///   - from: the offset of the first record that takes up room.
  func bound(takenThrough: UInt64, from: UInt64, _ situation: FlowSituation) -> FlowBound {
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
/// One that is still replaying holds nobody back as long as the log keeps what it has yet to read anyway. Beyond that its
/// records would be dropped, which doesn't happen here; so they count towards the buffer, too.
struct LosslessFlow: FlowStrategy {
  var buffer: FlowBuffer

  func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound {
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

  func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64? {
    readers.oldest ?? (buffer.withoutSubscribers == .buffer ? unreadFrom : nil)
  }
}

/// Producers follow the quickest subscriber; the others may lag.
struct FastestFlow: FlowStrategy {
  var buffer: FlowBuffer

  func bound(_ readers: ReaderPositions, _ situation: FlowSituation) -> FlowBound {
    guard readers.oldest != nil else { return FlowBound(buffer.limitWithoutSubscribers(situation)) }
    guard let quickest = readers.caughtUp else { return FlowBound(buffer.sliding) }
    return buffer.bound(takenThrough: quickest.mostAsked, from: quickest.mostTaken, situation)
  }

  func keepFrom(_ readers: ReaderPositions, unreadFrom: UInt64?) -> UInt64? {
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
