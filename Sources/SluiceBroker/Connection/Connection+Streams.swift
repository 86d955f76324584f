import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// Performs the session's actions; most are for a stream's object.
extension Connection {
  var registry: TopicRegistry { context.core.registry }

  func perform(_ action: ServerAction) {
    if action.isRequest { noteUse() }
    switch action {
    case .none: break
    case .append(let stream, let count, let batch):
      unsafe object(PublicationStream.self, on: stream)?.append(count, batch)
    case .demand(let stream, let granted):
      if let subscription = object(Consumer.self, on: stream), subscription.raise(to: granted) {
        makeReady(subscription)
      }
    case .commit(let stream, let offset): commit(stream, offset)
    case .welcome(let agreement): opened(agreement)
    case .authenticate(let agreement): authenticate(agreement)
    case .subscribe(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkSubscriptions()
        try subscribe(stream, frame)
      }
    case .subscribePattern(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkSubscriptions()
        try subscribePattern(stream, frame)
      }
    case .join(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkSubscriptions()
        try join(stream, frame)
      }
    case .settle(let stream, let frame): settle(stream, frame)
    case .openPublication(let stream, let frame):
      attempt(stream) { () throws(WireError) in
        try checkPublications()
        try PublicationStream.open(stream, frame, on: self)
      }
    case .complete(let stream, let ending): object(PublicationStream.self, on: stream)?.complete(ending)
    case .cancel(let stream):
      // A cancelled producer still gets the acknowledgements of its records.
      if let publication = object(PublicationStream.self, on: stream) { return publication.cancel() }
      confirmCancel(stream)
    // The client may have ended a topic whose end isn't on disk yet.
    case .confirmCancel(let stream): confirmCancel(stream)
    case .fault(let stream, let fault):
      if fault.code == .limitReached { context.core.metrics.add(.refusedOversizes) }
      refuse(stream, fault)
    case .createTopic(let stream, _), .showTopic(let stream, _), .listTopics(let stream, _, _),
      .deleteTopic(let stream, _), .connectTopic(let stream, _, _), .listCursors(let stream, _, _, _),
      .moveCursor(let stream, _), .deleteCursor(let stream, _, _), .renew(let stream, _):
      let request = RequestStream(stream, on: self)
      attach(request, to: stream)
      attempt(stream) { () throws(WireError) in try request.perform(action) }
    case .pong(let token): send(Pong(token: token), stream: 0)
    }
  }

  /// Calls `body`; an error ends this stream alone.
  func attempt(_ stream: UInt32, _ body: () throws(WireError) -> Void) {
    do {
      try body()
    } catch {
      refuse(stream, Fault(error))
    }
  }

  /// Ends a stream with an error. A producer first gets the acknowledgements of its kept records.
  func refuse(_ stream: UInt32, _ fault: Fault) {
    if let publication = object(PublicationStream.self, on: stream) { publication.acknowledge(on: self) }
    if fault.code == .limitReached {
      report(.refused(asClient, peer: peer, WireError(fault.code, fault.message)))
    }
    endStream(stream)
    send(fault, stream: stream)
  }

  private func confirmCancel(_ stream: UInt32) {
    releaseStream(stream)
    send(Cancelled(), stream: stream)
  }

  private func commit(_ stream: UInt32, _ offset: UInt64) {
    switch session.object(stream) {
    case let ended as CommittingStream: ended.commit(through: offset)
    case let consumer as Consumer:
      attempt(stream) { () throws(WireError) in
        guard let subscription = consumer as? Subscription else { throw DurablePlace.isMissing }
        try subscription.commit(through: offset)
      }
    default: break
    }
  }

  private func settle(_ stream: UInt32, _ frame: Settle) {
    guard let member = object(GroupMember.self, on: stream) else {
      return refuse(
        stream,
        Fault(code: .unsupported, message: "SETTLE is for members of a group; this subscription isn't one"))
    }
    settle(frame, in: member.group)
  }

  /// Answers a request, unless it was cancelled meanwhile.
  func answer(_ request: StreamToken?, _ frame: some Frame) {
    if let request, session.answers(request) { send(frame, stream: request.stream) }
  }
}
