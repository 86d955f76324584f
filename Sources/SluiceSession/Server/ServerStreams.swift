import SluiceWire

/// The streams of one connection, and what frames about open ones do to them: credit is spent and granted, streams are left and end. An error that is thrown
/// ends the connection.
struct ServerStreams {
  var table = ServerStreamTable()
  /// Positions that have come for subscriptions that are opening.
  private(set) var positions = PendingPositions()
  /// Nothing new is published or opened.
  var isDraining = false

  // MARK: Frames on open streams

  mutating func publish(
    _ frame: FrameHeader, _ body: UnsafeRawBufferPointer, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    let stream = frame.stream
    let (header, batch) = unsafe try PublishHeader.decode(body)
    guard case .publication(var credit) = table[stream] else { return try misplaced(stream, .publish) }
    if isDraining { return .none }
    guard header.firstSequence == credit.records.spent else {
      return fault(
        stream,
        .malformedBatch,
        "PUBLISH counts from \(header.firstSequence) where \(credit.records.spent) records had been published"
      )
    }
    let held = credit.held
    if UInt64(header.count) <= held.records, held.bytes > 0 {
      do {
        try unsafe RecordLayout.validate(batch, count: header.count, maximumRecord: rules.records.present)
      } catch {
        return fault(stream, error.code, error.message)
      }
    }
    // Where its last record begins matters to a batch only that is longer than what was granted.
    let start =
      UInt64(batch.count) <= held.bytes ? 0 : unsafe RecordLayout.startOfLastRecord(in: batch)
    guard credit.spend(records: UInt64(header.count), bytes: batch.count, beforeLast: start) else {
      return fault(
        stream, .demandExceeded,
        """
        \(header.count) records in \(batch.count) bytes were published where \(held.records) more, and \
        \(held.bytes) bytes, had been granted; wait for DEMAND
        """)
    }
    table[stream] = .publication(credit)
    return unsafe .append(
      stream: stream, count: header.count, batch: batch,
      isAwaited: frame.flags & StreamFlag.unhurried == 0)
  }

  mutating func demand(_ stream: UInt32, _ demand: Demand) throws(WireError) -> ServerAction {
    let granted: UInt64
    switch table[stream] {
    case .subscription(let through): granted = through
    case .opening(let frame): granted = frame.grantedThrough
    default: return try misplaced(stream, .demand)
    }
    guard demand.grantedThrough > 0 else {
      return fault(
        stream, .invalidDemand, "DEMAND grants nothing; it must name the total of records, at least 1")
    }
    guard demand.grantedThrough > granted else { return .none }
    if case .opening(var frame) = table[stream] {
      frame.grantedThrough = demand.grantedThrough
      table[stream] = .opening(frame)
      return .none
    }
    table[stream] = .subscription(grantedThrough: demand.grantedThrough)
    return .demand(stream: stream, grantedThrough: demand.grantedThrough)
  }

  /// A subscription to a pattern was opened: it begins with the last of the positions at which it continues.
  ///
  /// - Parameter action: what opening it has asked of the broker.
  mutating func openedPattern(
    _ stream: UInt32, _ action: ServerAction, _ rules: borrowing ServerSessionRules
  ) -> ServerAction {
    guard case .opening(let frame) = table[stream] else { return action }
    positions.add(frame.positions)
    return positions.exceed(rules) ? tooManyPositions(stream, frame, rules) : action
  }

  /// Positions have come in a long frame for a subscription that is opening.
  func read(_ stream: UInt32, _ reader: PositionsReader) throws(WireError) -> ServerAction {
    guard case .opening = table[stream] else { return try misplaced(stream, .positions) }
    return .readPositions(stream: stream, reader, filter: RecordFilter())
  }

  mutating func goOn(
    _ stream: UInt32, _ more: Positions, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction {
    guard case .opening(var frame) = table[stream] else { return try misplaced(stream, .positions) }
    do {
      try more.validateNames()
    } catch {
      positions.remove(frame.positions)
      return fault(stream, error.code, error.message)
    }
    // So that what has come isn't copied with every frame.
    table[stream] = .ended
    frame.positions += more.positions
    positions.add(more.positions)
    if positions.exceed(rules) { return tooManyPositions(stream, frame, rules) }
    guard more.more else {
      positions.remove(frame.positions)
      frame.more = false
      table[stream] = .subscription(grantedThrough: frame.grantedThrough)
      return .subscribePattern(stream: stream, frame)
    }
    table[stream] = .opening(frame)
    return .openingPattern(stream: stream, positions: more.positions, filter: RecordFilter())
  }

  private mutating func tooManyPositions(
    _ stream: UInt32, _ frame: SubscribePattern, _ rules: borrowing ServerSessionRules
  ) -> ServerAction {
    positions.remove(frame.positions)
    return fault(
      stream, .limitReached,
      """
      positions in more than \(rules.maximumPositions) topics, or of more than \(rules.maximumPositionBytes) bytes, are on \
      their way, which is the broker's limit; use patterns that match fewer, or several connections
      """)
  }

  func commit(_ stream: UInt32, _ commit: Commit) throws(WireError) -> ServerAction {
    switch table[stream] {
    // The last records of a topic that has ended are committed behind COMPLETE.
    case .subscription, .ended: break
    default: return try misplaced(stream, .commit)
    }
    return .commit(stream: stream, nextOffset: commit.nextOffset)
  }

  func lend(_ stream: UInt32, _ loan: Lend) throws(WireError) -> ServerAction {
    guard case .subscription = table[stream] else { return try misplaced(stream, .lend) }
    return .lend(stream: stream, loan)
  }

  mutating func settle(
    _ stream: UInt32, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> ServerAction {
    guard case .subscription = table[stream] else { return try misplaced(stream, .settle) }
    do {
      return unsafe .settle(stream: stream, try Settle(body: body))
    } catch {
      // A verdict that this broker doesn't know is no reason to part.
      if error.code.endsConnection { throw error }
      return fault(stream, error.code, error.message)
    }
  }

  mutating func complete(_ stream: UInt32, _ complete: Complete) throws(WireError) -> ServerAction {
    guard case .publication(let credit) = table[stream] else { return try misplaced(stream, .complete) }
    if isDraining { return .none }
    if case .failure(_, let message) = complete.ending, message.utf8.count > Limits.message {
      return fault(
        stream, .limitReached,
        "the failure's message has \(message.utf8.count) bytes; the limit is \(Limits.message)")
    }
    leave(stream, credit)
    return .complete(stream: stream, complete.ending)
  }

  mutating func cancel(_ stream: UInt32) throws(WireError) -> ServerAction {
    guard stream != 0, stream <= table.highest else {
      throw WireError(.invalidStream, "CANCEL on stream \(stream), which was never opened")
    }
    switch table[stream] {
    case .publication(let credit):
      leave(stream, credit)
      return .cancel(stream: stream)
    case .leaving: return .confirmCancel(stream: stream)
    case .subscription:
      table[stream] = .free
      return .cancel(stream: stream)
    case .opening(let frame): positions.remove(frame.positions)
    case .free, .ended, .request: break
    }
    // The stream's object is released before CANCELLED is sent.
    if table.object(stream) == nil { table.end(stream, .free) } else { table[stream] = .free }
    return .confirmCancel(stream: stream)
  }

  private mutating func leave(_ stream: UInt32, _ credit: PublicationCredit) {
    table[stream] = table.object(stream) == nil ? .free : .leaving(credit)
  }

  // MARK: Opening and refusing

  /// Makes room for a stream that the client wants to open; says why it can't be.
  mutating func refusal(
    _ stream: UInt32, _ rules: borrowing ServerSessionRules
  ) throws(WireError) -> ServerAction? {
    guard stream != 0, stream <= rules.maximumStreams else {
      throw WireError(
        .invalidStream, "stream \(stream) isn't in 1...\(rules.maximumStreams), which WELCOME announced")
    }
    switch table[stream] {
    case .free, .ended: break
    case .leaving:
      throw WireError(
        .invalidStream,
        "stream \(stream) was begun anew before CANCELLED had come; wait for it, or take another number")
    case .subscription, .opening, .publication, .request:
      throw WireError(.invalidStream, "stream \(stream) is in use already")
    }
    table.makeRoom(for: stream)
    guard !isDraining else {
      return fault(stream, .shuttingDown, "the broker is stopping; connect to another or try again later")
    }
    return nil
  }

  /// A frame for a stream that isn't what the frame needs: dropped when the stream ended while it was under way, otherwise the two sides
  /// don't agree on what is open.
  private func misplaced(_ stream: UInt32, _ type: FrameType) throws(WireError) -> ServerAction {
    if case .ended = table[stream] { return .none }
    throw WireError(.invalidStream, "\(type) on stream \(stream), which isn't open for it")
  }

  mutating func fault(_ stream: UInt32, _ code: ErrorCode, _ message: String) -> ServerAction {
    if case .publication(let credit) = table[stream], table.object(stream) != nil {
      table[stream] = .leaving(credit)
    } else {
      table[stream] = .ended
    }
    return .fault(stream: stream, Fault(code: code, message: message))
  }
}
