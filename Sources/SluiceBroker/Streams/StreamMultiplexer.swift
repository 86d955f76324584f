import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// The streams of one connection: performs the session's actions, and serves the streams.
///
/// ```
///  Connection ── ServerAction ──► StreamMultiplexer ──► SubscriptionStream, PublicationStream …
///       ▲                                │
///       └──── answers, ready streams ◄───┘
/// ```
// @unchecked: belongs to `loop`. Other threads use it only in jobs on that loop, through `reference`.
final class StreamMultiplexer: @unchecked Sendable {
  /// The bytes that each subscription may send at a time if several are ready.
  private static let portion = 64 << 10
  /// Bytes of memory for answers that a connection with producers keeps.
  private static let keptAnswers = 16 << 10

  let client: ConnectedClient
  let topics: TopicLoop
  /// Nil for a broker of one node, which serves all topics.
  let routing: (any TopicRouting)?
  /// The connection, which owns the streams.
  @safe @exclusivity(unchecked) unowned var transport: (any StreamTransport)!
  private var madeReference: StreamReference?

  /// Contains the table of streams.
  @safe @exclusivity(unchecked) var session = ServerSession()
  @safe @exclusivity(unchecked) var counts = StreamCounts()
  @safe @exclusivity(unchecked) private var maximumFrame = UInt32(Limits.smallestFrame)
  /// Bytes of other nodes' frames that wait for the client.
  private var heldBytes: UInt32 = 0
  /// Encoded frames that haven't been written yet.
  @safe @exclusivity(unchecked) var answers: [UInt8] = []
  @safe @exclusivity(unchecked) private var readySubscriptions = ReadyQueue<any SubscriberStream>()
  private var isRateTimerSet = false
  /// Ready subscriptions wait until the identity's rate allows more.
  @safe @exclusivity(unchecked) private(set) var isHeldByRate = false
  /// Publications with acknowledgements or grants to send.
  @safe @exclusivity(unchecked) private var duePublications: [any DueStream] = []
  /// Work of frames that exceeded a turn's budget, in order.
  @safe @exclusivity(unchecked) private var unfinishedWork: [() -> Void] = []

  init(_ client: ConnectedClient, on topics: TopicLoop, routing: (any TopicRouting)?) {
    self.client = client
    self.routing = routing
    self.topics = topics
  }

  var core: BrokerCore { client.core }
  var loop: any EventLoop { topics.loop }

  /// The longest batch that fits a frame of the client.
  var largestBatch: Int { Int(maximumFrame) - DeliverHeader.size - RecordLayout.timeMarkSize }

  /// Sets the longest frame that the client accepts, as sent by the client.
  func agree(maximumFrame: Int) { self.maximumFrame = UInt32(maximumFrame) }

  var blockedSince: MonotonicTime? { transport.blockedSince }
  var obstacle: StreamObstacle? { transport.obstacle }

  /// Created on first use: most connections that only subscribe never need it.
  var reference: StreamReference {
    if let madeReference { return madeReference }
    let made = StreamReference(self, on: loop)
    madeReference = made
    return made
  }

  /// Whether acknowledgements are withheld. Without a valid lease, this node of a cluster can't know whether its shards have another owner, and only the
  /// owner may acknowledge records.
  var holdsAcknowledgements: Bool {
    guard let routes = core.routes else { return false }
    return topics.holdsUnsaved || !routes.lease.isValid(at: loop.readClock())
  }

  /// Whether the broker is a node of a cluster.
  var isClustered: Bool { core.routes != nil }

  /// Whether records of a topic are withheld while the node's lease is invalid.
  func mayHold(_ topic: Topic) -> Bool { isClustered && topic.isUnsaved }

  // MARK: The table

  /// Sets the object that serves a stream which the client has opened.
  func attach(_ object: any ServerStream, to stream: UInt32) {
    if let former = session.object(stream) { counts.count(former.kind, -1, core) }
    session.attach(object, to: stream)
    counts.count(object.kind, 1, core)
  }

  /// Releases the object that serves a stream, if there is one.
  func releaseStream(_ stream: UInt32) {
    guard let object = session.object(stream) else { return session.detach(stream) }
    object.release()
    session.detach(stream)
    counts.count(object.kind, -1, core)
  }

  /// Ends a stream on the broker's side. The object is released first, since it returns the stream's unused grant to its topic, and the session forgets that
  /// grant when the stream ends.
  func endStream(_ stream: UInt32) {
    releaseStream(stream)
    session.ended(stream)
  }

  /// The object that serves a stream, if it has that type.
  func object<S: ServerStream>(_ type: S.Type, on stream: UInt32) -> S? {
    session.object(stream) as? S
  }

  /// The client that uses a stream: the connection's own, or a client of another node that has opened the stream on its behalf.
  func user(of stream: UInt32) -> Origin {
    session.origin(of: stream) ?? Origin(node: "", connection: client.connection, client: client.name)
  }

  /// The description of the connection's client for another node at which this node opens a stream on its behalf.
  var origin: Origin {
    Origin(node: core.routes?.name ?? "", connection: client.connection, client: client.name)
  }

  /// Returns a continuation of the present use of a stream.
  func continuation(of stream: UInt32) -> StreamContinuation {
    StreamContinuation(reference: reference, token: session.token(of: stream))
  }

  /// Marks a stream as a subscription that waits for the store.
  func pending(_ stream: UInt32) -> StreamContinuation {
    attach(PendingSubscription(), to: stream)
    return continuation(of: stream)
  }

  /// Ends all streams without sending anything to the client.
  func releaseAll() {
    for number in session.numbers { releaseStream(number) }
    core.stores.forgetWaiters(of: client.connection)
    session = ServerSession()
    duePublications = []
    readySubscriptions = ReadyQueue()
    unfinishedWork = []
  }

  /// Ignores completions that arrive after the connection has closed.
  func close() {
    madeReference?.clear()
  }

  // MARK: Frames out

  /// Appends a frame to the answers.
  func send(_ frame: some Frame, stream: UInt32) {
    frame.encode(stream: stream, into: &answers)
    transport.makeReady()
  }

  /// Frees the memory of written answers. A connection with publications keeps some for its acknowledgements; others keep none.
  func freeUnused() {
    let kept = counts.publications == 0 ? 0 : Self.keptAnswers
    if answers.isEmpty, answers.capacity > kept { answers = [] }
  }

  /// Answers a request, unless it was cancelled meanwhile.
  func answer(_ request: StreamToken?, _ frame: some Frame) {
    if let request, session.answers(request) { send(frame, stream: request.stream) }
  }

  /// Calls `body`. An error ends only this stream.
  func attempt(_ stream: UInt32, _ body: () throws(WireError) -> Void) {
    do {
      try body()
    } catch {
      refuse(stream, Fault(error))
    }
  }

  /// Ends a stream with an error. A producer first gets the acknowledgements of its stored records.
  func refuse(_ stream: UInt32, _ fault: Fault) {
    object(PublicationStream.self, on: stream)?.acknowledge(on: self)
    if fault.code == .limitReached { client.reportRefusal(WireError(fault)) }
    endStream(stream)
    send(fault, stream: stream)
  }

  /// Adds the acknowledgements of all stored records to the answers.
  func acknowledgeAll() {
    for number in session.numbers { object(PublicationStream.self, on: number)?.acknowledge(on: self) }
  }

  /// Replaces the client's identity. If the permissions differ, open streams are checked again.
  func adopt(_ identity: Identity) {
    guard client.adopt(identity) else { return }
    for number in session.numbers {
      if let stream = session.object(number) {
        attempt(number) { () throws(WireError) in try stream.reconsider() }
      }
    }
  }

  /// Bytes of other nodes' frames that wait for the client.
  var relayedBytes: Int { Int(heldBytes) }

  /// Counts a change of ``relayedBytes``.
  func relayed(_ change: Int) {
    guard change != 0 else { return }
    heldBytes = UInt32(relayedBytes + change)
    transport.held(change)
  }

  // MARK: Queues for the end of a turn

  /// Queues a subscription with demand or a change, to be served at the end of this turn.
  func makeReady(_ subscription: any SubscriberStream) {
    guard case .none = subscription.place else { return }
    subscription.move(to: .ready)
    readySubscriptions.append(subscription)
    transport.makeReady()
  }

  /// Queues a publication whose acknowledgements and grants are to be sent at the end of this turn.
  func makeDue(_ publication: any DueStream) {
    duePublications.append(publication)
    transport.makeDue()
  }

  var hasReady: Bool { !readySubscriptions.isEmpty }

  /// Adds the acknowledgements and grants of due publications to the answers.
  func settlePublications() {
    guard !duePublications.isEmpty else { return }
    for publication in duePublications { publication.settleDue() }
    if duePublications.capacity <= 16 { duePublications.removeAllInPlace() } else { duePublications = [] }
  }

  /// Adds the records of ready subscriptions to `writes`, until it is full or the identity's rate is used up.
  func serveSubscriptions(_ writes: WriteBatch) {
    isHeldByRate = false
    if readySubscriptions.isEmpty { return }
    var limit = core.configuration.limits.writeBatch
    let account = client.account
    if account?.delivering != nil {
      let room = deliveryRoom(atMost: limit)
      isHeldByRate = room == 0
      if isHeldByRate { return }
      limit = min(limit, writes.work + room)
    }
    let before = writes.bytes
    var records: UInt64 = 0
    defer {
      topics.sent(records: records)
      account?.delivering?.spend(records: records, bytes: UInt64(max(writes.bytes - before, 0)))
    }
    while writes.work < limit, writes.hasRoom, let subscription = readySubscriptions.popFirst() {
      guard case .ready = subscription.place else { continue }
      subscription.move(to: .none)
      let room = limit - writes.work
      let bytes = readySubscriptions.isEmpty ? room : min(room, Self.portion)
      let spent = subscription.credit.spent
      defer { records &+= subscription.credit.spent &- spent }
      switch subscription.produce(into: writes, bytes: bytes) {
      case .more:
        subscription.move(to: .ready)
        readySubscriptions.append(subscription)
      case .waiting: subscription.wait()
      case .starved: subscription.noteDemandExhausted()
      case .loading: break
      case .ended: ended(subscription)
      }
    }
  }

  private func ended(_ subscription: any SubscriberStream) {
    let (stream, successor) = (subscription.stream, subscription.successor(on: self))
    endStream(stream)
    if let successor { attach(successor, to: stream) }
  }

  // MARK: Rates

  /// Returns how many bytes of records may be sent now, at most `most`. When the rate is used up, it returns 0 and arms a timer that makes the connection
  /// ready again.
  private func deliveryRoom(atMost most: Int) -> Int {
    guard let limiter = client.account?.delivering else { return most }
    let now = loop.now
    let room = limiter.room(at: now)
    if room == 0 {
      core.metrics.add(.deliveryRateHolds)
      wakeForRate(after: limiter.wait(at: now))
    }
    return min(room, most)
  }

  /// Arms the timer that resumes publications and subscriptions blocked by the identity's rate.
  func wakeForRate(after delay: Duration) {
    guard !isRateTimerSet else { return }
    isRateTimerSet = true
    reference.schedule(after: delay) { streams in
      streams.isRateTimerSet = false
      for number in streams.session.numbers {
        streams.object(PublicationStream.self, on: number)?.rateAllowsMore()
      }
      streams.transport.makeReady()
    }
  }

  // MARK: Work for several turns

  var hasUnfinishedWork: Bool { !unfinishedWork.isEmpty }

  /// Queues `work` for the connection's next turn, before more frames are handled.
  func goOnLater(_ work: @escaping () -> Void) {
    unfinishedWork.append(work)
    transport.makeReady()
  }

  /// Continues unfinished work until the turn's budget is used up. The rest is queued again.
  func resumeWork() {
    guard hasUnfinishedWork else { return }
    let work = unfinishedWork
    unfinishedWork = []
    var begun = 0
    while begun < work.count, !client.workBudget.isExhausted {
      work[begun]()
      begun += 1
    }
    unfinishedWork.insert(contentsOf: work[begun...], at: 0)
  }
}

/// A reference to a connection's streams for completions on other loops: a commit, an answer of the store, the loss of a cursor to another client.
///
/// After the connection has closed, its streams aren't called. A weak reference would do the same, but with it the runtime counts every reference to the
/// object on a slow path, several times per batch.
// @unchecked: `streams` belongs to `loop`.
final class StreamReference: @unchecked Sendable {
  private let loop: any EventLoop
  /// Nil when the connection has closed. Its context retains it until then, and a loop that has released its context runs no jobs.
  private unowned var streams: StreamMultiplexer?

  init(_ streams: StreamMultiplexer, on loop: any EventLoop) {
    self.streams = streams
    self.loop = loop
  }

  /// Calls `body` on the connection's loop, unless the connection has closed by then. From any thread.
  func execute(_ body: @escaping @Sendable (StreamMultiplexer) -> Void) {
    loop.execute { [self] in call(body) }
  }

  /// Calls `body` on the connection's loop after a delay, unless the connection has closed by then. On the loop.
  func schedule(after delay: Duration, _ body: @escaping @Sendable (StreamMultiplexer) -> Void) {
    _ = loop.schedule(after: delay) { [self] in call(body) }
  }

  private func call(_ body: (StreamMultiplexer) -> Void) {
    if let streams { body(streams) }
  }

  /// Stops all further calls. On the loop.
  func clear() {
    streams = nil
  }
}
