import Glibc
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// A connection of an MQTT client: it serves the client's bytes and session, and is a client of the native protocol towards the broker.
///
/// ```
///  client ─ bytes ─► MQTTSession ─ MQTTAction ─► MQTTPublication, MQTTFeed ─ frames ─► DoorLink ─► Connection
///         ◄─ output ─                          ◄────────── ClientAction ──────────────
/// ```
///
/// Each message becomes a record in a batch in one direction, and a packet in the output in the other. Batches, demand and acknowledgements are sent once per
/// turn. The extensions Bytes, Link, Publish, Deliver and End implement the behaviour.
///
/// Properties that every message uses have `@exclusivity(unchecked)`: the run-time check of overlapping accesses would cost more than the message. No
/// accesses overlap: all are on one loop, and within a call of the session ``perform(_:)`` uses neither the session nor the output.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTConnection: @unchecked Sendable {
  enum Phase: Hashable {
    /// The client is connected.
    case open
    /// The client has disconnected or is being disconnected. Its messages and will are still being sent to the broker.
    case leaving
    case closed
  }

  /// The connection stops taking records while more bytes of output than this wait for the client.
  static let maximumOutput = 256 << 10
  /// The connection stops reading while more bytes of messages than this wait for the broker's grants.
  static let maximumPending = 256 << 10
  /// How long messages of a disconnected client wait for the broker's grants.
  static let linger = Duration.seconds(30)

  let loop: any EventLoop
  let hub: MQTTHub
  let transport: any ByteStream
  /// State that remains while the connection is packed.
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
  /// Bytes of an incomplete packet.
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
  /// Whether the connection had a turn since ``MQTTLoop`` last checked it, and whether the loop will check it again.
  var hadTurn = false
  var isWatched = false
  var quietLooks: UInt8 = 0
  /// Whether it was created from a packed connection.
  var wasPacked = false
  /// Whether frames of the broker have arrived since the last turn ended, which a turn may need to process.
  var hasNews = false
  /// Whether the turn ends with that of the loop: see ``MQTTLoop/endTurnLater(_:)``.
  var isEndDue = false
  /// Whether publications are closed once everything that was sent on them is acknowledged.
  var areClosing = false
  /// Whether the client's messages get a header that identifies the broker's copies of them. Only for a client with a subscription that excludes its own
  /// messages.
  var marksOwn = false
  /// Whether another connection has taken over the session, and whether it has ended the session.
  var isSurrendered = false
  var isForgotten = false
  var isLasting = false
  /// The broker accepts no more frames from this connection.
  var isCutOff = false
  /// The longest frame that the broker accepts.
  var maximumFrame: UInt32 = 65_536

  /// Messages of the client; nil before the first one.
  @safe @exclusivity(unchecked) var publishing: MQTTPublishing?
  var pendingBytes = 0

  // Messages for the client.
  @safe @exclusivity(unchecked) var feeds = ShortTable<UInt32, MQTTFeed>()
  var subscriptions = ShortTable<UInt16, MQTTSubscriptionFeeds>()
  /// Subscriptions that wait for earlier messages of the client.
  var waitingRequests: [MQTTWaitingRequest] = []
  @safe @exclusivity(unchecked) var held: [MQTTHeldBatch] = []
  /// Records that the session has requested and not received.
  var credit = 0
  /// Nil while all records arrive without demand.
  @safe @exclusivity(unchecked) var shares: MQTTShares?
  var topics = MQTTTopicTable()
  /// Messages to read again, in the order in which they were sent; the first one is being read.
  var fetches: [(packetID: UInt16, place: MQTTPlace)] = []
  /// The value of the header; nil until a subscription needs it.
  @OutOfLine var mark: String? = nil

  /// CONNECT, until the broker has answered HELLO.
  @OutOfLine var requested: MQTTConnect? = nil
  /// Why the connection ends; nil if the client disconnected by itself.
  @OutOfLine var error: IOError? = nil

  // State that outlives the connection.
  /// The progress of a session that outlives its connection, or has outlived an earlier one; nil for others.
  var progress: MQTTProgress?
  /// Changes that are being stored, and packets that wait for them; nil if no state outlives the broker.
  var keeping: MQTTKeeping?
  /// The claim to the session; nil for a connection that needs none.
  var hold: MQTTHold?
  /// State for a node of a cluster; nil otherwise.
  var part: MQTTClusterPart?
  @OutOfLine var will: MQTTConnect.Will? = nil
  /// State after the client has disconnected; nil before.
  var leaving: MQTTLeaving?

  // $SYS topics.
  /// Subscriptions that the loop's ``MQTTTraffic`` counts.
  var counted = MQTTSubscriptionCount()
  /// Subscriptions to $SYS topics; nil without one.
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

  /// Restores the state of a packed connection.
  func goOn(marksOwn: Bool, mark: String?) {
    (self.marksOwn, self.mark, silence) = (marksOwn, mark, MQTTSilence(isAgreed: true))
  }

  /// Whether the client's stream is open and being read, and needs no turn.
  var isTransportQuiet: Bool {
    transportIsOpen && !isReadingPaused && partialBytes == 0 && !isComingRound && !isEndDue
  }

  /// Whether streams may be opened; false once the broker is stopping.
  var opensStreams: Bool { native.phase == .open }

  // MARK: The session

  /// Calls the session, and performs its actions.
  @discardableResult
  func play<Result>(
    _ body: (inout MQTTSession, inout [UInt8], (MQTTAction) -> Void) -> Result
  ) -> Result {
    let result = body(&session, &output) { action in perform(action) }
    if !later.isEmpty { runLater() }
    return result
  }

  /// Performs an action inside a call of the session; actions that may call the session are queued.
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
    // Without a store, state is kept in memory: it is saved when the connection ends.
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

  /// Reports to the session that a message at QoS 1 or 2 is in the log, or why it isn't.
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

  /// Ends a turn: sends pending output in both directions.
  ///
  /// - Parameter wakesBroker: whether to schedule a turn in which the broker reads what was sent.
  func endTurn(wakesBroker: Bool = true) {
    guard phase != .closed else { return }
    hasNews = false
    isEndDue = false
    // First, unless a change must be stored before: the client waits for this output.
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
        // Held records may have needed no acknowledgement, and free room at once.
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
    // The client's stream took all output, so it won't report that it is writable.
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
    // One access for both, which avoids a copy of the session.
    let known = play { session, _, _ in (session.deadline, session.isOpen) }
    guard let time = silence.next(known.0, isOpen: known.1, isTimerSet: handle.timer != nil) else { return }
    loop.cancel(&handle.timer)
    handle.wake(at: MonotonicTime(nanoseconds: time))
  }

  /// The timer has fired.
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
