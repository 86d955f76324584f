import SluiceSession
import SluiceTopics
import SluiceWire

// Performs the session's actions of streams; most are for a stream's object.
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
        if try !isElsewhere(action) { try SubscriptionStream.open(stream, frame, on: self) }
      }
    case .subscribePattern(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkSubscriptions(core)
        if try !isElsewhere(action) { try PatternStream.open(stream, frame, on: self) }
      }
    case .join(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkSubscriptions(core)
        if try !isElsewhere(action) { try GroupStream.open(stream, frame, on: self) }
      }
    case .openPublication(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try counts.checkPublications(core)
        if try !isElsewhere(action) { try PublicationStream.open(stream, frame, on: self) }
      }
    case .complete(let stream, let ending): session.object(stream)?.complete(ending)
    case .cancel(let stream):
      // A cancelled producer still gets the acknowledgements of its records.
      if session.object(stream)?.cancel() ?? true { confirmCancel(stream) }
    // The client may have ended a topic whose end isn't on disk yet.
    case .confirmCancel(let stream): confirmCancel(stream)
    case .fault(let stream, let fault):
      if fault.code == .limitReached { core.metrics.add(.refusedOversizes) }
      refuse(stream, fault)
    case .createTopic(let stream, _), .showTopic(let stream, _), .listTopics(let stream, _, _),
      .deleteTopic(let stream, _), .connectTopic(let stream, _, _), .listCursors(let stream, _, _, _),
      .moveCursor(let stream, _), .deleteCursor(let stream, _, _), .renew(let stream, _),
      .setTopic(let stream, _), .trimTopic(let stream, _), .listConnections(let stream, _, _),
      .closeConnection(let stream, _), .showBroker(let stream), .showCluster(let stream, _),
      .drainNode(let stream, _), .moveShard(let stream, _), .listStates(let stream, _),
      .restoreStates(let stream, _):
      attempt(stream) { () throws(WireError) in
        if try isElsewhere(action) { return }
        let request = RequestStream(stream, on: self)
        attach(request, to: stream)
        try request.perform(action)
      }
    }
  }

  /// Whether a stream or request is about a topic that this node doesn't serve, and is taken care of.
  private func isElsewhere(_ action: ServerAction) throws(WireError) -> Bool {
    guard let routing else { return false }
    return try routing.take(action, on: self)
  }

  private func confirmCancel(_ stream: UInt32) {
    releaseStream(stream)
    send(Cancelled(), stream: stream)
  }
}
