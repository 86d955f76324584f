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
/// extensions Publish, Deliver and End have its behaviour.
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
  /// Bytes that are read at a time: few of a client that sends single messages, so that they fit on the stack, where memory is at hand.
  private static let littleRead = 1024
  private static let muchRead = 65_536
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
  private var partialBytes = 0
  private var timerTime: UInt64 = 0
  private var transportIsOpen = true
  private var isReadingPaused = false
  /// Whether the last read filled a small buffer.
  private var readsMuch = false
  /// Whether the timer is that of a client whose CONNECT was accepted, and whether it comes after one at which the client wasn't read.
  private var hasKeepAlive = false
  private var looksAgain = false

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
  /// Whether publications are closed when everything that was sent on them is acknowledged.
  var areClosing = false
  /// Whether the client's messages have a header by which the broker's copies of them are known: where a subscription is without them.
  private(set) var marksOwn = false
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
  @safe @exclusivity(unchecked) var held: [MQTTHeldBatch] = []
  /// Records that the session has asked for and hasn't got.
  var credit = 0
  /// Nil while records come without demand only.
  @safe @exclusivity(unchecked) var shares: MQTTShares?
  var topics = MQTTTopicTable()
  /// Messages that are to be read again, in the order in which they were sent; the first one is being read.
  var fetches: [(packetID: UInt16, place: MQTTPlace)] = []
  /// What the header says; nil before there was a subscription that needs it.
  @OutOfLine private(set) var mark: String? = nil

  /// CONNECT, until the broker has answered HELLO.
  @OutOfLine var requested: MQTTConnect? = nil
  /// Why the connection ends, where the client hasn't left by itself.
  @OutOfLine var error: IOError? = nil

  // What outlives the connection.
  /// How far a session has come that outlives its connection, or has outlived another one; nil for others.
  var progress: MQTTProgress?
  /// What is on its way to the store, and what waits for it; nil where nothing outlives the broker.
  var keeping: MQTTKeeping?
  /// What there is at a node of a cluster only.
  var part: MQTTClusterPart?
  @OutOfLine var will: MQTTConnect.Will? = nil
  /// What there is once the client is gone.
  var leaving: MQTTLeaving?

  convenience init(_ handle: MQTTHandle) {
    self.init(handle, MQTTSession(handle.shared.rules, now: handle.loop.now.nanoseconds))
    part = hub.cluster.map { MQTTClusterPart(number: $0.newNumber()) }
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
    (self.marksOwn, self.mark, hasKeepAlive) = (marksOwn, mark, true)
  }

  /// Whether the client's stream is open and read, and no turn is due because of it.
  var isTransportQuiet: Bool { transportIsOpen && !isReadingPaused && partialBytes == 0 && !isComingRound }

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
      case .sendRetained(let number): sendRetained(number)
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
    sendOutput()
    if phase == .leaving { leaveWhenDone() }
    updateReading()
    updateTimer()
    link.tellHeldBytes(heldBytes)
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

  // MARK: Bytes of the client

  func streamReadable() {
    guard phase == .open else { return }
    if readsMuch {
      unsafe withUnsafeTemporaryAllocation(byteCount: Self.muchRead, alignment: 16) { unsafe read(into: $0) }
    } else {
      unsafe withUnsafeTemporaryAllocation(byteCount: Self.littleRead, alignment: 16) {
        unsafe read(into: $0)
      }
    }
    endTurn(wakesBroker: false)
    // This is an event of the client's stream, not a call of the broker: the broker can read at once.
    link.handOut()
    link.wake()
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer) {
    switch unsafe transport.read(into: buffer) {
    case .wouldBlock: return
    case .end: transportEnded()
    case .failed(let error):
      transportIsOpen = false
      self.error = error
      transportEnded()
    case .bytes(let count):
      readsMuch = count >= Self.littleRead
      unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer) {
    guard unread.isEmpty else {
      unsafe unread.append(contentsOf: bytes)
      return takeUnread()
    }
    let taken = unsafe receive(bytes)
    if taken < bytes.count { unread = unsafe Array(bytes[taken...]) }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    let now = loop.now.nanoseconds
    // All in one access, which doesn't copy the session.
    return play { session, output, perform in
      let received = unsafe session.receive(bytes, now: now, output: &output, perform)
      (marksOwn, partialBytes) = (received.hasNoLocal, received.heldBytes)
      return received.taken
    }
  }

  // By itself: elsewhere the optimiser would look at the mark, with a check of overlapping accesses, before it is known whether it is needed.
  @inline(never)
  private func makeMark() {
    // The same for all connections of the client, at every node: what it has published by an earlier one is its own, too.
    if mark == nil, let key {
      mark = String(IdentityDigest.number(of: key.clientID, of: key.identity), radix: 36)
    }
  }

  /// Takes bytes that came before the broker's answers.
  func takeUnread() {
    while phase == .open, !unread.isEmpty, pendingBytes <= Self.maximumPending {
      let bytes = unread
      unread = []
      let taken = unsafe bytes.withUnsafeBytes { unsafe receive($0) }
      let rest = bytes[taken...]
      unread = rest + unread
      if taken == 0 { return }
    }
  }

  private func transportEnded() {
    play { session, _, perform in session.transportEnded(perform) }
  }

  func streamWritable() {
    sendOutput()
    if unsent == 0 { endTurn() }
  }

  var obstacle: StreamObstacle? { transport.obstacle }

  var heldBytes: Int {
    let own = unsent + unread.count + pendingBytes + partialBytes + transport.heldBytes
    return held.isEmpty ? own : held.reduce(own) { $0 + $1.bytes.count }
  }

  /// Bytes for the client that wait for its reading, or for the store.
  @inline(__always)
  var unsent: Int { keeping == nil ? output.count : output.count + keptBytes }

  @inline(never)
  private var keptBytes: Int { keeping?.heldBytes ?? 0 }

  func streamFailed(_ error: IOError) {
    dropOutput()
    guard phase == .open else { return }
    self.error = error
    transportEnded()
    endTurn()
  }

  private func dropOutput() {
    transportIsOpen = false
    output = []
    keeping?.sendable = []
  }

  func sendOutput() {
    guard transportIsOpen else { return }
    var isSent = true
    if keeping == nil {
      if !output.isEmpty { isSent = output.write(to: transport) }
    } else if let count = keeping?.sendable.count, count > 0 {
      isSent = keeping?.sendable.write(to: transport) ?? true
    }
    if isSent { return }
    dropOutput()
    if phase == .open { transportEnded() }
  }

  /// Reads no more while earlier messages wait for the broker's grants, or the broker for its own work.
  private func updateReading() {
    guard transportIsOpen else { return }
    let pauses =
      phase != .open || !unread.isEmpty || pendingBytes > Self.maximumPending || link.isFull
      || unsent > 4 * Self.maximumOutput
    guard pauses != isReadingPaused else { return }
    isReadingPaused = pauses
    transport.readsPaused = pauses
  }

  /// Closes the client's stream when its output is out.
  func closeTransport() {
    guard transportIsOpen else { return }
    // What waits for the store isn't sent any more; what the client is told at the end doesn't depend on it.
    keeping?.sendable += output
    if keeping != nil { output = [] }
    sendOutput()
    guard transportIsOpen else { return }
    transportIsOpen = false
    transport.close()
  }

  // MARK: Times

  func updateTimer() {
    // The timer looks again at when it is due. A deadline that is nearer comes with CONNECT only.
    guard phase == .open, handle.timer == nil || !hasKeepAlive else { return }
    let known = play { session, _, _ in (session.deadline, session.isOpen) }
    hasKeepAlive = known.1
    guard let deadline = known.0, handle.timer == nil || deadline < timerTime else { return }
    loop.cancel(&handle.timer)
    timerTime = deadline
    handle.wake(at: MonotonicTime(nanoseconds: deadline))
  }

  /// The time of the timer has come.
  func timeHasCome() {
    guard phase == .open else { return }
    // A client that isn't read can't be heard: once it is read again, its silence is looked at anew.
    if looksAgain {
      looksAgain = false
      return updateTimer()
    }
    guard isReadingPaused, session.deadline != nil else {
      let now = loop.now.nanoseconds
      play { session, output, perform in session.tick(now: now, output: &output, perform) }
      return endTurn()
    }
    looksAgain = true
    timerTime = loop.now.nanoseconds + 1_000_000_000
    handle.wake(at: MonotonicTime(nanoseconds: timerTime))
  }
}
