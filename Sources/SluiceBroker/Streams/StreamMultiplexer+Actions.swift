import SluiceSession
import SluiceTopics
import SluiceWire

// Performs the session's actions of streams; most of them are passed to a stream's object.
extension StreamMultiplexer {
  func perform(_ action: ServerAction) {
    switch action {
    case .none, .welcome, .authenticate, .pong: break
    case .append(let stream, let count, let batch, let isAwaited):
      unsafe session.object(stream)?.append(count, batch, isAwaited: isAwaited)
    case .demand(let stream, let granted): session.object(stream)?.demand(through: granted)
    case .commit(let stream, let offset):
      attempt(stream) { () throws(WireError) in try session.object(stream)?.commit(through: offset) }
    case .settle(let stream, let frame):
      attempt(stream) { () throws(WireError) in try session.object(stream)?.settle(frame) }
    case .lend(let stream, let loan):
      attempt(stream) { () throws(WireError) in try session.object(stream)?.lend(loan) }
    case .subscribe(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkSubscriptions(core)
        try keep(action)
        if try !isElsewhere(action) { try SubscriptionStream.open(stream, frame, on: self) }
      }
    case .subscribePattern(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkSubscriptions(core)
        try keep(action)
        if try !isElsewhere(action) { try PatternStream.open(stream, frame, on: self) }
      }
    case .openingPattern(let stream, let positions, let filter):
      attempt(stream) { () throws(WireError) in
        client.workBudget.spend(positions.count, of: .positions)
        try keep(KeptCost.bytes(of: positions) + KeptCost.bytes(of: filter), of: stream)
      }
    case .readPositions(let stream, let reader, let filter):
      attempt(stream) { () throws(WireError) in
        try keep(reader.byteCount + KeptCost.bytes(of: filter), of: stream)
        readPositions(of: stream, session.token(of: stream), reader)
      }
    case .join(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkSubscriptions(core)
        try keep(action)
        if try !isElsewhere(action) { try GroupStream.open(stream, frame, on: self) }
      }
    case .openPublication(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkPublications(core)
        try keep(action)
        if try !isElsewhere(action) { try PublicationStream.open(stream, frame, on: self) }
      }
    case .complete(let stream, let ending): session.object(stream)?.complete(ending)
    case .cancel(let stream):
      // A cancelled producer still gets the acknowledgements of its records.
      if session.object(stream)?.cancel() ?? true { confirmCancel(stream) }
    // The end of a topic that the client has ended may not be on disk yet.
    case .confirmCancel(let stream): confirmCancel(stream)
    case .fault(let stream, let fault):
      if fault.code == .limitReached { core.metrics.add(.refusedOversizes) }
      refuse(stream, fault)
    default:
      guard let stream = action.requestNumber else { return }
      attempt(stream) { () throws(WireError) in
        try keep(action)
        if try isElsewhere(action) { return }
        let request = RequestStream(stream, on: self)
        attach(request, to: stream)
        try request.perform(action)
      }
    }
  }

  /// Reads positions of a long frame until the turn's work budget is used up. The rest is read in the connection's next turn.
  private func readPositions(of stream: UInt32, _ token: StreamToken, _ reader: PositionsReader) {
    var reader = reader
    while session.isCurrent(token) {
      guard !client.workBudget.isExhausted else {
        return goOnLater { [unowned self, reader] in readPositions(of: stream, token, reader) }
      }
      do {
        let count = client.workBudget.left(.positions)
        let action = try session.goOn(stream, &reader, atMost: count, core.rules)
        if reader.isAtEnd { charge(of: stream)?.add(-reader.byteCount) }
        perform(action)
      } catch {
        return transport.fail(error)
      }
      if reader.isAtEnd { return }
    }
  }

  // MARK: The account

  /// Charges a stream that is about to be opened for the memory that its frame uses. The stream's slot in the session owns the charge.
  private func keep(_ action: ServerAction) throws(WireError) {
    guard let (stream, cost) = KeptCost.of(action) else { return }
    // The last frame contains the positions of the earlier ones, too.
    charge(of: stream)?.set(to: 0)
    session.setCharge(try client.kept.charge(cost.bytes, isPlain: cost.isPlain), of: stream)
  }

  /// Charges a stream that is being opened for more memory.
  private func keep(_ bytes: Int, of stream: UInt32) throws(WireError) {
    if let charge = charge(of: stream) { return try charge.grow(by: bytes) }
    session.setCharge(try client.kept.charge(bytes), of: stream)
  }

  /// The charge of a stream; nil if it has none.
  func charge(of stream: UInt32) -> KeptAccount.Charge? { session.charge(of: stream) as? KeptAccount.Charge }

  /// Returns whether a stream or request is about a topic of another node, in which case `routing` serves it.
  private func isElsewhere(_ action: ServerAction) throws(WireError) -> Bool {
    guard let routing else { return false }
    return try routing.take(action, on: self)
  }

  private func confirmCancel(_ stream: UInt32) {
    releaseStream(stream)
    send(Cancelled(), stream: stream)
  }
}
