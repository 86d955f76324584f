import SluiceWire

/// The ledger of one subscription: its grants and received records, checked frame by frame.
///
/// It fails once the broker breaks a rule: more records than granted, a gap, a repetition, a marker that is missing or in the wrong place, or a frame
/// after the end.
public struct SubscriptionLedger {
  /// An event, with consecutive records joined.
  public enum Event: Hashable, Sendable {
    case subscribed(next: UInt64, live: UInt64)
    case records(Range<UInt64>)
    case live(UInt64)
    case lag(missed: UInt64, next: UInt64)
    case complete(Complete.Ending)
    case fault(ErrorCode)
    case cancelled
  }

  public let stream: UInt32
  /// The highest grant, updated before it is sent, since the broker may use it immediately.
  public private(set) var granted: UInt64
  public private(set) var delivered: UInt64 = 0
  public private(set) var events: [Event] = []
  public private(set) var epoch: UInt64?
  /// The next expected offset; nil before SUBSCRIBED.
  public private(set) var nextOffset: UInt64?
  /// The timestamp of the last record.
  public private(set) var time: Int64?
  public private(set) var isLive = false
  /// Whether SUBSCRIBED allows gaps between offsets.
  public private(set) var gaps = false
  public private(set) var isOver = false
  /// The number of DELIVER frames so far.
  public private(set) var batches = 0

  /// Whether `payloads` and `times` are recorded.
  public var keepsPayloads = true
  /// The bodies and timestamps of the records.
  public private(set) var payloads: [[UInt8]] = []
  public private(set) var times: [Int64] = []
  /// Called with each record, in place.
  public var onRecord: ((_ offset: UInt64, _ body: UnsafeRawBufferPointer) throws -> Void)?

  private var liveOffset: UInt64 = 0
  private var hasMarkedTime = false

  init(stream: UInt32, granted: UInt64) {
    self.stream = stream
    self.granted = granted
  }

  public mutating func grant(through total: UInt64) {
    granted = max(granted, total)
  }

  /// The payloads, as text.
  public var texts: [String] { payloads.map { String(decoding: $0, as: UTF8.self) } }

  mutating func account(_ frame: ReceivedFrame) throws {
    try require(!isOver, "\(frame) after the end of the stream, which was \(events.last!)")
    if frame.type != .subscribed, frame.type != .error, frame.type != .cancelled {
      try require(epoch != nil, "\(frame) before SUBSCRIBED")
    }
    switch frame.type {
    case .subscribed: try subscribed(frame.decode(Subscribed.self))
    case .deliver: try deliver(frame)
    case .live: try live(frame.decode(Live.self).nextOffset)
    case .lag: try lag(frame.decode(Lag.self))
    case .complete: end(.complete(try frame.decode(Complete.self).ending))
    case .error: end(.fault(try frame.decode(Fault.self).code))
    case .cancelled: end(.cancelled)
    default: throw TestFailure("\(frame), which doesn't belong on a subscription")
    }
  }

  private mutating func subscribed(_ frame: Subscribed) throws {
    try require(epoch == nil, "SUBSCRIBED twice on stream \(stream)")
    try require(frame.epoch != 0, "SUBSCRIBED with epoch 0, which means any")
    try require(
      frame.nextOffset <= frame.liveOffset,
      "SUBSCRIBED with live offset \(frame.liveOffset) before the first, \(frame.nextOffset)")
    epoch = frame.epoch
    gaps = frame.gaps
    nextOffset = frame.nextOffset
    liveOffset = frame.liveOffset
    events.append(.subscribed(next: frame.nextOffset, live: frame.liveOffset))
  }

  private mutating func deliver(_ frame: ReceivedFrame) throws {
    try frame.body.withUnsafeBytes { bytes in
      let (header, batch) = try DeliverHeader.decode(bytes)
      let first = header.firstOffset
      try require(header.count > 0, "DELIVER without records")
      try require(
        isNext(first), "DELIVER of stream \(stream) begins at \(first) instead of \(nextOffset!)")
      let (total, overflow) = delivered.addingReportingOverflow(UInt64(header.count))
      try require(
        !overflow && total <= granted,
        "beyond the grant: stream \(stream) was granted \(granted) records and got \(total)")

      var iterator = BatchIterator(batch, time: time ?? .min)
      var offset = first
      while let record = try iterator.next() {
        hasMarkedTime = hasMarkedTime || record.time != .min
        try require(hasMarkedTime, "the record at \(offset) has no time")
        try require(record.time >= time ?? .min, "the record at \(offset) is older than the one before")
        time = record.time
        if keepsPayloads {
          payloads.append([UInt8](record.body))
          times.append(record.time)
        }
        try onRecord?(offset, record.body)
        offset += 1
      }
      try require(
        offset - first == UInt64(header.count),
        "DELIVER announces \(header.count) records and has \(offset - first)")
      try require(
        isLive ? first >= liveOffset : offset <= liveOffset,
        "the records \(first)..<\(offset) are on the wrong side of LIVE; SUBSCRIBED said \(liveOffset)")

      delivered = total
      nextOffset = offset
      batches += 1
      if case .records(let range) = events.last, range.upperBound == first {
        events[events.count - 1] = .records(range.lowerBound..<offset)
      } else {
        events.append(.records(first..<offset))
      }
    }
  }

  /// Whether a record with this offset may follow.
  private func isNext(_ offset: UInt64) -> Bool {
    offset == nextOffset || gaps && offset > nextOffset!
  }

  private mutating func live(_ offset: UInt64) throws {
    try require(!isLive, "LIVE twice on stream \(stream)")
    try require(isNext(offset), "LIVE says \(offset) where \(nextOffset!) is next")
    try require(offset >= liveOffset, "LIVE at \(offset), before \(liveOffset), where live begins")
    isLive = true
    nextOffset = offset
    events.append(.live(offset))
  }

  private mutating func lag(_ frame: Lag) throws {
    try require(frame.missed > 0, "LAG of nothing")
    // A lag at the start is reported after SUBSCRIBED, which already contains the offset after it.
    let isAtStart = events.count == 1 && frame.nextOffset == nextOffset
    try require(
      isAtStart || isNext(frame.nextOffset &- frame.missed) || gaps && frame.nextOffset == nextOffset,
      "LAG of \(frame.missed) from \(nextOffset!) leads to \(frame.nextOffset)")
    nextOffset = frame.nextOffset
    events.append(.lag(missed: frame.missed, next: frame.nextOffset))
  }

  private mutating func end(_ event: Event) {
    isOver = true
    events.append(event)
  }
}
