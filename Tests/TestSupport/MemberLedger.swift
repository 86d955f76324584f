import SluiceWire

/// The ledger of one member of a group: its grants and deliveries, checked frame by frame.
public struct MemberLedger {
  public struct Record: Hashable, Sendable {
    public var offset: UInt64
    public var delivery: UInt32
    public var body: [UInt8]
    public var time: Int64

    public var text: String { String(decoding: body, as: UTF8.self) }
  }

  public let stream: UInt32
  public private(set) var granted: UInt64
  public private(set) var records: [Record] = []
  public private(set) var joined: Subscribed?
  public private(set) var isLive = false
  /// Records that the broker reported as dropped.
  public private(set) var missed: UInt64 = 0
  public private(set) var ending: Complete.Ending?
  public private(set) var fault: Fault?
  public private(set) var isOver = false

  private var delivery: UInt32 = 1
  private var time: Int64?

  init(stream: UInt32, granted: UInt64) {
    self.stream = stream
    self.granted = granted
  }

  public var texts: [String] { records.map(\.text) }
  public var offsets: [UInt64] { records.map(\.offset) }

  mutating func grant(through total: UInt64) { granted = max(granted, total) }

  mutating func account(_ frame: ReceivedFrame) throws {
    try require(!isOver, "\(frame) after the end of the stream")
    switch frame.type {
    case .subscribed:
      let subscribed = try frame.decode(Subscribed.self)
      try require(joined == nil && subscribed.epoch != 0 && subscribed.gaps, "an odd \(subscribed)")
      joined = subscribed
    case .live:
      try require(joined != nil && !isLive, "\(frame) twice, or before SUBSCRIBED")
      isLive = true
    case .deliveries: delivery = try frame.decode(Deliveries.self).count
    case .lag: missed += try frame.decode(Lag.self).missed
    case .deliver: try deliver(frame)
    case .complete:
      ending = try frame.decode(Complete.self).ending
      isOver = true
    case .error:
      fault = try frame.decode(Fault.self)
      isOver = true
    case .cancelled: isOver = true
    default: throw TestFailure("\(frame), which doesn't belong on a member's stream")
    }
  }

  private mutating func deliver(_ frame: ReceivedFrame) throws {
    try require(isLive, "\(frame) before LIVE")
    try frame.body.withUnsafeBytes { body in
      let (header, batch) = try DeliverHeader.decode(body)
      var iterator = BatchIterator(batch, count: header.count, time: time ?? .min)
      var offset = header.firstOffset
      while let record = try iterator.next() {
        try require(record.time != .min, "a record without a time")
        records.append(
          Record(offset: offset, delivery: delivery, body: Array(record.body), time: record.time))
        offset += 1
      }
      time = iterator.time
    }
    try require(
      UInt64(records.count) <= granted, "\(records.count) records came where \(granted) had been granted")
  }
}

extension RawClient {
  /// Sends JOIN, and receives frames until the reply.
  @discardableResult
  public func join(
    _ topic: String, _ group: String, stream: UInt32, from start: Subscribe.Start = .replay,
    _ settings: JoinGroup.Settings = JoinGroup.Settings(), granted: UInt64 = Credit.unlimited
  ) throws -> Subscribed {
    try sendJoin(topic, group, stream: stream, from: start, settings, granted: granted)
    try receive(until: "the answer to JOIN") { members[stream]!.isLive || members[stream]!.isOver }
    guard let joined = members[stream]!.joined else {
      throw TestFailure(
        "JOIN \(group) was answered by \(members[stream]!.fault.map { "\($0)" } ?? "nothing")")
    }
    return joined
  }

  public func sendJoin(
    _ topic: String, _ group: String, stream: UInt32, from start: Subscribe.Start = .replay,
    _ settings: JoinGroup.Settings = JoinGroup.Settings(), granted: UInt64 = Credit.unlimited
  ) throws {
    members[stream] = MemberLedger(stream: stream, granted: granted)
    try send(
      JoinGroup(topic: topic, group: group, start: start, settings: settings, grantedThrough: granted),
      stream: stream)
  }

  /// Sends JOIN, which must be denied.
  public func expectNoJoin(
    _ topic: String, _ group: String, _ settings: JoinGroup.Settings, _ code: ErrorCode, stream: UInt32 = 999
  ) throws {
    try sendJoin(topic, group, stream: stream, settings)
    try receive(until: "the answer to JOIN") { members[stream]!.isOver }
    let fault = members[stream]!.fault
    try require(fault?.code == code, "expected \(code), got \(fault.map { "\($0)" } ?? "no fault")")
  }

  /// Sends a member's DEMAND, after recording it.
  public func ask(_ total: UInt64, stream: UInt32) throws {
    members[stream]!.grant(through: total)
    try send(Demand(grantedThrough: total), stream: stream)
  }

  /// Receives until the member has `count` records in all.
  public func receiveShare(_ count: Int, stream: UInt32) throws {
    try receive(until: "\(count) records for member \(stream); there are \(members[stream]!.texts)") {
      try require(
        !members[stream]!.isOver || members[stream]!.records.count >= count,
        "member \(stream) ended with \(members[stream]!.texts), \(members[stream]!.fault.map { "\($0)" } ?? "no fault")"
      )
      return members[stream]!.records.count >= count
    }
  }

  /// Sends SETTLE for some of the member's records, by their indexes.
  public func settle(_ verdict: Settle.Verdict, _ places: Int..., stream: UInt32) throws {
    for place in places {
      let record = members[stream]!.records[place]
      try send(
        Settle(verdict, delivery: record.delivery, firstOffset: record.offset, count: 1), stream: stream)
    }
  }
}
