import Glibc
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// A connection of a client of MQTT: its bytes and its session on one side, a client of the native protocol on the other.
///
/// ```
///  client ─ bytes ─► MQTTSession ─ MQTTAction ─► MQTTPublication, MQTTFeed ─ frames ─► DoorLink ─► Connection
///         ◄─ output ─                          ◄────────── ClientAction ──────────────
/// ```
///
/// Per message there is a record in a batch one way, and a packet in the output the other way. Batches, demand and acknowledgements go by turn. The
/// extensions Bytes, Link, Publish, Deliver and End have its behaviour.
///
/// What is used for each message has `@exclusivity(unchecked)`: the run-time check of overlapping accesses would cost more than the message does. None
/// overlaps: all are on one loop, and within a call of the session ``perform(_:)`` uses neither the session nor the output.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTConnection: @unchecked Sendable {
  enum Phase: Hashable {
    /// The client is there.
    case open
    /// The client is gone or told to go; what it has published, and its will, are still on their way to the broker.
    case leaving
    case closed
  }

  /// Bytes of output that may wait for the client to read before no more records are taken.
  static let maximumOutput = 256 << 10
  /// Bytes of messages that may wait for the broker's grants before no more is read from the client.
  static let maximumPending = 256 << 10
  /// How long messages of a client that is gone wait for the broker's grants.
  static let linger = Duration.seconds(30)

  let loop: any EventLoop
  let hub: MQTTHub
  let transport: any ByteStream
  /// What lasts while the connection is quiet.
  let handle: MQTTHandle
  let link: DoorLink

  // The two sessions.
  @safe @exclusivity(unchecked) var session: MQTTSession
  @safe @exclusivity(unchecked) var native = ClientSession()
  var key: MQTTHub.Key?
  @safe @exclusivity(unchecked) var later = MQTTLaterQueue()

  // Bytes.
  @safe @exclusivity(unchecked) var output: [UInt8] = []
  @safe @exclusivity(unchecked) var unread: [UInt8] = []
  /// Bytes of a packet that isn't complete.
  var partialBytes = 0
  private var silence = MQTTSilence()
  var transportIsOpen = true
  var isReadingPaused = false
  /// Whether the last read filled a small buffer.
  var readsMuch = false

  // Flags, which share a word.
  var phase = Phase.open
  /// Whether the client's stream has been started.
  var isRead = false
  private var isComingRound = false
  /// Whether it has had a turn since it was last looked at, and whether it is looked at again: see ``MQTTLoop``.
  var hadTurn = false
  var isWatched = false
  var quietLooks: UInt8 = 0
  /// Whether it was made of one that was packed.
  var wasPacked = false
  /// Whether the broker has said something since the last turn ended that a turn may have to go on with.
  var hasNews = false
  /// Whether the turn is ended when the loop's is: see ``MQTTLoop/endTurnLater(_:)``.
  var isEndDue = false
  /// Whether publications are closed when everything that was sent on them is acknowledged.
  var areClosing = false
  /// Whether the client's messages have a header by which the broker's copies of them are known: where a subscription is without them.
  var marksOwn = false
  /// Another connection has taken the session, and whether it has ended it.
  var isSurrendered = false
  var isForgotten = false
  var isLasting = false
  /// The broker takes nothing more of this connection.
  var isCutOff = false
  /// The longest frame that the broker takes.
  var maximumFrame: UInt32 = 65_536

  /// Messages of the client; nil before the first one.
  @safe @exclusivity(unchecked) var publishing: MQTTPublishing?
  var pendingBytes = 0

  // Messages for the client.
  @safe @exclusivity(unchecked) var feeds = ShortTable<UInt32, MQTTFeed>()
  var subscriptions = ShortTable<UInt16, MQTTSubscriptionFeeds>()
  /// Subscriptions that wait for messages of the client.
  var waitingRequests: [MQTTWaitingRequest] = []
  @safe @exclusivity(unchecked) var held: [MQTTHeldBatch] = []
  /// Records that the session has asked for and hasn't got.
  var credit = 0
  /// Nil while records come without demand only.
  @safe @exclusivity(unchecked) var shares: MQTTShares?
  var topics = MQTTTopicTable()
  /// Messages that are to be read again, in the order in which they were sent; the first one is being read.
  var fetches: [(packetID: UInt16, place: MQTTPlace)] = []
  /// What the header says; nil before there was a subscription that needs it.
  @OutOfLine var mark: String? = nil

  /// CONNECT, until the broker has answered HELLO.
  @OutOfLine var requested: MQTTConnect? = nil
  /// Why the connection ends, where the client hasn't left by itself.
  @OutOfLine var error: IOError? = nil

  // What outlives the connection.
  /// How far a session has come that outlives its connection, or has outlived another one; nil for others.
  var progress: MQTTProgress?
  /// What is on its way to the store, and what waits for it; nil where nothing outlives the broker.
  var keeping: MQTTKeeping?
  /// The claim to the session; nil for a connection that needs none.
  var hold: MQTTHold?
  /// What there is at a node of a cluster only.
  var part: MQTTClusterPart?
  @OutOfLine var will: MQTTConnect.Will? = nil
  /// What there is once the client is gone.
  var leaving: MQTTLeaving?

  // What the broker says of itself.
  /// Subscriptions that are counted in the loop's ``MQTTTraffic``.
  var counted = MQTTSubscriptionCount()
  /// Subscriptions to values of the broker; nil without one.
  var system: MQTTSystemReading?

  convenience init(_ handle: MQTTHandle) {
    self.init(handle, MQTTSession(handle.shared.rules, now: handle.loop.now.nanoseconds))
    if hub.replica != nil { part = MQTTClusterPart() }
  }

  init(_ handle: MQTTHandle, _ session: MQTTSession) {
    self.handle = handle
    self.session = session
    transport = handle.transport
    link = handle.link
    hub = handle.shared.hub
    loop = handle.loop
  }

  /// Goes on as a connection that was packed.
  func goOn(marksOwn: Bool, mark: String?) {
    (self.marksOwn, self.mark, silence) = (marksOwn, mark, MQTTSilence(isAgreed: true))
  }

  /// Whether the client's stream is open and read, and no turn is due because of it.
  var isTransportQuiet: Bool {
    transportIsOpen && !isReadingPaused && partialBytes == 0 && !isComingRound && !isEndDue
  }

  /// Whether streams may be opened: not any more when the broker is about to stop.
  var opensStreams: Bool { native.phase == .open }

  // MARK: The session

  /// Calls the session, and does what it asks for.
  @discardableResult
  func play<Result>(
    _ body: (inout MQTTSession, inout [UInt8], (MQTTAction) -> Void) -> Result
  ) -> Result {
    let result = body(&session, &output) { action in perform(action) }
    if !later.isEmpty { runLater() }
    return result
  }

  /// Inside a call of the session: what may call it back comes later.
  private func perform(_ action: MQTTAction) {
    switch action {
    case .connect(let connect): later.append(.connect(connect))
    case .openPublication(let number, let topic): openPublication(number, topic)
    case .closePublication(let number): closePublication(number)
    case .publish(let message, let number, let sequence): publish(message, number, sequence)
    case .retain(let message, let topic): retain(message, topic)
    case .subscribe(let request): later.append(.subscribe(request))
    case .tellOwn:
      marksOwn = true
      makeMark()
    case .unsubscribe(let number): unsubscribe(number)
    case .request(let count): credit += count
    case .sendRetained(let number): later.append(.sendRetained(number))
    case .fetch(let packetID, let place): later.append(.fetch(packetID, place))
    case .commit(let number, let place):
      progress?.positions[number, default: MQTTPositions()].offsets[place.topic] = place.offset
      keeping?.isDirty = true
    case .settle(let number, let place):
      if keeping == nil { settle(number, place) } else { keeping?.settles.append((number, place)) }
    // Without a store, what is kept is in memory: it is taken when the connection ends.
    case .store: keeping?.want()
    case .refused(let refused): hub.note(refused, of: key)
    case .unnamed(let topic, let reason): hub.noteUnnamed(topic, reason, of: key)
    case .forget: hub.put(nil, of: self)
    case .end(let departure, let reason, let message): later.append(.end(departure, reason, message))
    }
  }

  func runLater() {
    guard later.begin() else { return }
    while let item = later.next() {
      switch item {
      case .connect(let connect): self.connect(connect)
      case .subscribe(let request): subscribe(request)
      case .fetch(let packetID, let place): fetchInTurn(packetID, place)
      case .fetchNext(let packetID, let place): fetch(packetID, place)
      case .sendRetained(let number):
        sendRetained(number)
        follow(number, sendsPresent: true)
      case .failed(let tokens, let error): answer(tokens, error)
      case .done(let tokens): answer(tokens, nil)
      case .copied(let packetIDs): copied(packetIDs)
      case .publicationEnded(let number): session.publicationEnded(number)
      case .end(let departure, let reason, let message):
        error = isCutOff ? nil : error ?? IOError(serving: link.peer, reason, message)
        depart(departure)
      }
    }
  }

  private func answer(_ tokens: [MQTTToken], _ error: MQTTError?) {
    for token in tokens where token.packetID != 0 { answer(token, error) }
  }

  /// Tells the session of a message at QoS 1 or 2 that it is in the log, or why it isn't.
  func answer(_ token: MQTTToken, _ error: MQTTError?) {
    if awaitsCopy(token, error) { return }
    if let sequence = token.exact {
      progress?.exact[sequence] = nil
      progress?.formerExact[sequence] = nil
    }
    play { session, output, perform in
      session.appended(token.packetID, error, output: &output, perform)
    }
  }

  /// Ends a turn: what events have made necessary goes out, in both directions.
  ///
  /// - Parameter wakesBroker: whether the broker reads in a turn of its own what it was sent.
  func endTurn(wakesBroker: Bool = true) {
    guard phase != .closed else { return }
    hasNews = false
    isEndDue = false
    // Before anything else, where nothing has to be kept first: the client waits for it.
    if keeping == nil { sendOutput() }
    guard phase != .closed else { return }
    hadTurn = true
    if !isWatched, phase == .open {
      isWatched = true
      handle.shared.watch(self)
    }
    if phase == .open {
      play { session, _, perform in session.flush(perform) }
      if !held.isEmpty {
        drainHeld()
        // Records that were held may have been acknowledged by nothing, and make room at once.
        play { session, _, perform in session.flush(perform) }
      }
      if credit > 0 { distribute() }
      if part != nil { sendLocalFeeds() }
      if keeping != nil { keep() }
    }
    if pendingBytes > 0 || areClosing { sendPublications() }
    if !waitingRequests.isEmpty, phase == .open {
      beginWaiting()
      if keeping != nil { keep() }
    }
    sendOutput()
    countTraffic()
    if phase == .leaving { leaveWhenDone() }
    updateReading()
    updateTimer()
    if link.tellHeldBytes(heldBytes) { handle.shared.brokerHasWork() }
    if wakesBroker { link.wake() }
    guard phase == .open else { return link.resume() }
    let unsent = unsent
    guard unsent <= Self.maximumOutput else { return }
    if !isHeldByOutput { return link.resume() }
    // The client's stream has taken everything, so it reports no room later.
    guard unsent == 0, !isComingRound else { return }
    isComingRound = true
    _ = loop.schedule(at: loop.now) { [weak self] in
      self?.isComingRound = false
      self?.endTurn()
    }
  }

  // MARK: Times

  func updateTimer() {
    guard phase == .open, silence.needsLook(isTimerSet: handle.timer != nil) else { return }
    // Together, which doesn't copy the session.
    let known = play { session, _, _ in (session.deadline, session.isOpen) }
    guard let time = silence.next(known.0, isOpen: known.1, isTimerSet: handle.timer != nil) else { return }
    loop.cancel(&handle.timer)
    handle.wake(at: MonotonicTime(nanoseconds: time))
  }

  /// The time of the timer has come.
  func timeHasCome() {
    guard phase == .open else { return }
    let now = loop.now.nanoseconds
    switch silence.timerCame(isRead: !isReadingPaused, isLimited: session.deadline != nil, now: now) {
    case .lookAnew: updateTimer()
    case .wait(let time): handle.wake(at: MonotonicTime(nanoseconds: time))
    case .tell:
      play { session, output, perform in session.tick(now: now, output: &output, perform) }
      endTurn()
    }
  }
}
