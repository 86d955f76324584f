import SluiceWire

// Subscriptions: demand out, records in.
extension ClientSession {
  /// Opens a subscription with its initial demand.
  ///
  /// - Parameters:
  ///   - isShared: whether it is a group member.
  ///   - commits: whether COMMIT may follow the topic's end: the caller then releases the number with ``releaseCommitting(_:)``.
  /// - Returns: the stream's number; nil when the broker accepts no more streams.
  package mutating func openSubscription(
    granted: UInt64, isPattern: Bool = false, isShared: Bool = false, commits: Bool = false
  ) -> UInt32? {
    open(
      .subscription(
        Inbound(credit: Credit(granted: granted), isPattern: isPattern, isShared: isShared, commits: commits))
    )
  }

  /// Raises a subscription's demand. Returns true when DEMAND is to be sent.
  package mutating func grant(_ stream: UInt32, through: UInt64) -> Bool {
    guard case .subscription(var inbound) = self[stream], inbound.credit.raise(to: through) else {
      return false
    }
    self[stream] = .subscription(inbound)
    return true
  }

  mutating func deliver(_ stream: UInt32, _ body: UnsafeRawBufferPointer) throws(WireError) -> ClientAction {
    let (header, batch) = unsafe try DeliverHeader.decode(body)
    guard var inbound = try subscription(stream, .deliver) else { return .none }
    guard header.count > 0 else { throw WireError(.malformedBatch, "a DELIVER announces no records") }
    guard inbound.credit.spend(UInt64(header.count)) else {
      throw WireError(
        .demandExceeded,
        "\(header.count) records came on stream \(stream), but only \(inbound.credit.available) more were requested"
      )
    }
    let end = header.firstOffset.addingReportingOverflow(UInt64(header.count))
    guard !end.overflow, inbound.accepts(at: header.firstOffset) else {
      throw WireError(
        .malformedBatch,
        "offset \(header.firstOffset) came on stream \(stream) where \(inbound.nextOffset) was next")
    }
    inbound.nextOffset = end.partialValue
    self[stream] = .subscription(inbound)
    return unsafe .deliver(stream: stream, header, batch: batch)
  }

  mutating func subscribed(_ stream: UInt32, _ frame: Subscribed) throws(WireError) -> ClientAction {
    switch self[stream] {
    case .subscription(var inbound) where !inbound.isOpen:
      inbound.isOpen = true
      inbound.nextOffset = frame.nextOffset
      inbound.hasGaps = frame.gaps
      self[stream] = .subscription(inbound)
      return .subscribed(stream: stream, frame)
    case .cancelling: return .none
    default: throw misplaced(.subscribed, stream)
    }
  }

  mutating func live(_ stream: UInt32, _ frame: Live) throws(WireError) -> ClientAction {
    guard var inbound = try subscription(stream, .live) else { return .none }
    guard !inbound.isLive || inbound.isPattern else {
      throw WireError(.unexpectedFrame, "LIVE came twice on stream \(stream)")
    }
    guard inbound.accepts(at: frame.nextOffset) else {
      throw WireError(
        .malformedFrame,
        "LIVE names offset \(frame.nextOffset) on stream \(stream), where \(inbound.nextOffset) was next")
    }
    inbound.isLive = true
    inbound.nextOffset = frame.nextOffset
    self[stream] = .subscription(inbound)
    return .live(stream: stream, frame)
  }

  mutating func producers(_ stream: UInt32, _ frame: Producers) throws(WireError) -> ClientAction {
    guard let inbound = try subscription(stream, .producers) else { return .none }
    guard !inbound.isPattern, !inbound.isShared else { throw misplaced(.producers, stream) }
    return .producers(stream: stream, count: frame.count)
  }

  mutating func lag(_ stream: UInt32, _ frame: Lag) throws(WireError) -> ClientAction {
    guard var inbound = try subscription(stream, .lag) else { return .none }
    guard frame.nextOffset >= inbound.nextOffset || inbound.isPattern || inbound.isShared else {
      throw WireError(
        .malformedFrame,
        "LAG goes back to offset \(frame.nextOffset) on stream \(stream), where \(inbound.nextOffset) was next"
      )
    }
    inbound.nextOffset = frame.nextOffset
    self[stream] = .subscription(inbound)
    return .lagged(stream: stream, frame)
  }

  mutating func deliveries(_ stream: UInt32, _ frame: Deliveries) throws(WireError) -> ClientAction {
    guard let inbound = try subscription(stream, .deliveries) else { return .none }
    guard inbound.isShared else { throw misplaced(.deliveries, stream) }
    return .deliveries(stream: stream, count: frame.count)
  }

  mutating func matched(_ stream: UInt32, _ frame: Matched) throws(WireError) -> ClientAction {
    try isPattern(stream, .matched) ? .matched(stream: stream, frame) : .none
  }

  mutating func unmatched(_ stream: UInt32, _ frame: Unmatched) throws(WireError) -> ClientAction {
    try isPattern(stream, .unmatched) ? .unmatched(stream: stream, number: frame.number) : .none
  }

  mutating func selectedTopic(_ stream: UInt32, _ frame: SelectTopic) throws(WireError) -> ClientAction {
    try isPattern(stream, .selectTopic) ? .selectedTopic(stream: stream, number: frame.number) : .none
  }

  /// Returns whether to handle a frame that only pattern subscriptions get: false when the stream was cancelled.
  private func isPattern(_ stream: UInt32, _ type: FrameType) throws(WireError) -> Bool {
    guard let inbound = try subscription(stream, type) else { return false }
    guard inbound.isPattern else { throw misplaced(type, stream) }
    return true
  }

  /// The open subscription on `stream`; nil when it was cancelled.
  private func subscription(_ stream: UInt32, _ type: FrameType) throws(WireError) -> Inbound? {
    switch self[stream] {
    case .subscription(let inbound) where inbound.isOpen: return inbound
    case .cancelling: return nil
    default: throw misplaced(type, stream)
    }
  }
}
