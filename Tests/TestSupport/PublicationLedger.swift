import SluiceWire

/// The ledger of one publication: grants, sent records and acknowledgements.
public struct PublicationLedger {
  public let topic: String
  public private(set) var epoch: UInt64?
  public private(set) var granted: UInt64 = 0
  public private(set) var bytesGranted: UInt64 = 0
  /// Whether the topic is connected, as last reported to a source.
  public private(set) var isConnected: Bool?
  public private(set) var acknowledged: UInt64 = 0
  /// The offset of the last acknowledged record.
  public private(set) var lastOffset: UInt64?
  /// Records sent so far.
  public var sent: UInt64 = 0
  /// Bytes of the batches sent so far.
  public var bytesSent: UInt64 = 0
  /// Whether the topic may restart, with offsets from 0.
  public var mayStartOver = false
  /// How the stream ended; nil while it is open.
  public private(set) var end: SubscriptionLedger.Event?

  init(topic: String) {
    self.topic = topic
  }

  /// How many of these records may be sent now, given the start of each in its batch. The last one may exceed the granted bytes.
  public func allowed(of starts: ArraySlice<Int>) -> Int {
    guard let first = starts.first, sent < granted, bytesSent < bytesGranted else { return 0 }
    let bytes = bytesGranted - bytesSent
    return starts.prefix(Int(clamping: granted - sent)).prefix { UInt64($0 - first) < bytes }.count
  }

  /// Whether `records` records may be sent now. The last one may exceed the granted bytes.
  ///
  /// - Parameter start: the bytes of the batch before its last record.
  public func allows(records: UInt64, beforeLast start: Int) -> Bool {
    guard sent + records <= granted, bytesSent < bytesGranted else { return false }
    return UInt64(start) < bytesGranted - bytesSent
  }

  mutating func account(_ frame: ReceivedFrame) throws {
    try require(end == nil, "\(frame) after the end of the publication, which was \(end!)")
    switch frame.type {
    case .publishOpened:
      let opened = try frame.decode(PublishOpened.self)
      epoch = opened.epoch
      granted = opened.grantedThrough
      bytesGranted = opened.bytesThrough
      sent = opened.nextSequence
      acknowledged = opened.nextSequence
    case .demand:
      let demand = try frame.decode(Demand.self)
      try require(
        demand.grantedThrough >= granted && demand.bytesThrough >= bytesGranted
          && (demand.grantedThrough, demand.bytesThrough) != (granted, bytesGranted),
        "the broker granted \(demand) after \(granted) and \(bytesGranted)")
      granted = demand.grantedThrough
      bytesGranted = demand.bytesThrough
    case .connected, .disconnected:
      let now = frame.type == .connected
      try require(isConnected != now, "\(frame) after \(isConnected as Any)")
      isConnected = now
    case .ack:
      let ack = try frame.decode(Ack.self)
      try require(
        ack.through > acknowledged && ack.through <= sent,
        "ACK through \(ack.through) after \(acknowledged), with \(sent) records sent")
      try require(
        mayStartOver || lastOffset == nil || ack.lastOffset > lastOffset!,
        "ACK goes back to \(ack.lastOffset)")
      acknowledged = ack.through
      lastOffset = ack.lastOffset
    case .complete: end = .complete(try frame.decode(Complete.self).ending)
    case .error: end = .fault(try frame.decode(Fault.self).code)
    case .cancelled: end = .cancelled
    default: throw TestFailure("\(frame), which doesn't belong on a publication")
    }
  }
}
