import SluiceIO
import SluiceNATS
import SluiceTopics

/// A node's part in a cluster: it keeps the node's lease at the engine, takes the shards that belong to it, hands over others, and records which node owns
/// which shard.
///
/// All of it is used on its loop. It calls back there, never from within a call. The owner must call ``close()``, or ``leave()`` and wait for
/// ``ClusterEvent/left``.
// @unchecked: all of it is used on the loop only.
public final class ClusterNode: @unchecked Sendable {
  public let options: ClusterOptions
  public let loop: any EventLoop
  /// The client of the engine, also used for the shards' streams.
  public let client: NATSClient
  var control: ClusterControl
  private var api: JetStream
  private var events: ((ClusterEvent) -> Void)?
  private var check: EngineCheck?
  private var engineWatch: EngineWatch?
  private var health = EngineHealth()
  private var streamRounds = StreamRounds()
  private var watch: JetStreamWatch?
  private var timer: TimerToken?
  private var signal: (any LoopSignal)!
  private var problems: [String] = []
  private var isClosed = false
  /// Called when the lease was renewed or lost, before the resulting events: with the time at which it ends; nil without one.
  var leaseChanged: ((MonotonicTime?) -> Void)?
  private var toldLease: MonotonicTime?
  /// Checks whether a peer's broker can be reached, and calls back on the loop with the reason if it can't; nil if it was reached.
  var checkPeer: ((PeerCheck, @escaping @Sendable (String?) -> Void) -> Void)?
  /// Since when the connected server of the engine hasn't served the lease; nil while it does.
  private var uselessSince: MonotonicTime?
  private var isRefused = false

  /// - Parameters:
  ///   - options: the node's name, address, and engine.
  ///   - network: where connections to the engine are made, without TLS.
  ///   - loop: the loop on which the node runs and calls back.
  ///   - writer: a random number that distinguishes this process from others of the same name.
  /// - Throws: ``ClusterError`` for invalid settings; `NATSError` for invalid addresses and TLS files.
  public init(
    _ options: ClusterOptions, network: any Network, on loop: any EventLoop,
    writer: UInt64 = UInt64.random(in: 1 ... .max)
  ) throws {
    try options.check()
    self.options = options
    self.loop = loop
    client = try NATSClient(options.engine, options: options.nats, network: network, on: loop)
    api = JetStream(client)
    api.timeout = options.times.answer
    control = ClusterControl(options, writer: writer)
    signal = loop.makeSignal { [weak self] in self?.advance() }
  }

  /// Connects to the engine, joins the cluster, and takes part until ``close()``. Call it once.
  ///
  /// - Parameter events: called with the node's events, in order.
  public func start(_ events: @escaping (ClusterEvent) -> Void) {
    self.events = events
    client.start { [weak self] event in self?.happened(event) }
  }

  /// Ends at once: the lease expires, and the other nodes then take over the shards. Further calls do nothing.
  public func close() {
    guard !isClosed else { return }
    isClosed = true
    check?.stop()
    watch?.stop()
    engineWatch?.stop()
    if let timer { loop.cancel(timer) }
    timer = nil
    let last = events
    events = nil
    _ = consume last
    client.close()
  }

  /// Hands all shards over to the other nodes, then ends the session: ``ClusterEvent/left`` follows, after which the caller calls ``close()``.
  public func leave() {
    control.leave()
    signal.fire()
  }

  /// Notes that the broker has opened a shard that it has gained. Ignores a term that has ended.
  public func opened(_ shard: Int, term: UInt64) {
    control.opened(shard, term: term, at: loop.now)
    signal.fire()
  }

  /// Notes that the broker has flushed and closed a shard, or couldn't open it: the shard moves to another node. Ignores a term that has ended.
  public func closed(_ shard: Int, term: UInt64) {
    control.closed(shard, term: term, at: loop.now)
    signal.fire()
  }

  // MARK: Looking up

  /// The shard of a topic; nil before the number of shards is known.
  public func shard(of topic: String) -> Int? { control.shard(of: topic) }

  /// How a topic is reached.
  public func route(of topic: String) -> ClusterRoute {
    control.shard(of: topic).map { control.route(of: $0) } ?? .moving
  }

  /// How the topics of a shard are reached.
  func route(ofShard shard: Int) -> ClusterRoute { control.route(of: shard) }

  /// The number of shards, nil before it is known, and the other live nodes.
  var others: (shards: Int?, nodes: [RemoteNode]) {
    let live = control.directory.nodes.filter { $0.value.isLive && $0.key != options.name }
    return (
      control.directory.shardCount,
      live.map { RemoteNode(name: $0.key, address: $0.value.record.address) }
    )
  }

  /// Whether the node may rely on its lease, by its own clock. If not, only changes that the engine has confirmed may be acknowledged and delivered.
  public var isLeaseValid: Bool { control.session.isValid(at: loop.readClock()) }

  /// The node's knowledge of the cluster.
  public var status: ClusterStatus {
    ClusterStatus(
      control, problems: problems, health, isConnected: client.isConnected, server: client.server,
      isUnsafe: options.engineUnsafe, at: loop.now)
  }

  // MARK: An operator's wishes

  /// Makes a node hand over its shards, or cancels that. The drain lasts until it is cancelled, also across restarts.
  ///
  /// - Parameters:
  ///   - node: the node's name; the node need not be live.
  ///   - isWanted: false to cancel the drain.
  ///   - completion: gets the failure, or nil if the request was stored.
  public func drain(
    _ node: String, _ isWanted: Bool = true, _ completion: @escaping (NATSError?) -> Void
  ) throws(NATSError) {
    try publish(.drain(node, isWanted), completion)
  }

  /// Pins a shard to a node while that is live, or cancels that.
  ///
  /// - Parameters:
  ///   - shard: the shard's number.
  ///   - node: the node's name; nil to cancel the pin.
  ///   - completion: gets the failure, or nil if the request was stored.
  public func pin(
    _ shard: Int, to node: String?, _ completion: @escaping (NATSError?) -> Void
  ) throws(NATSError) {
    try publish(.pin(shard, node), completion)
  }

  private func publish(
    _ record: ControlRecord, _ completion: @escaping (NATSError?) -> Void
  ) throws(NATSError) {
    let message = NATSMessage(subject: record.subject, payload: Array(record.payload.utf8))
    try api.publish(message, to: ControlRecord.stream) { result in
      if case .failure(let error) = result { completion(error) } else { completion(nil) }
    }
  }

  // MARK: The engine

  private func happened(_ event: NATSClient.Event) {
    switch event {
    case .connected:
      problems = []
      uselessSince = nil
      events?(.engineConnected(server: client.server))
      // The watch restarts by itself.
      if watch == nil, !isClosed { prepare() }
    case .interrupted(let error), .closed(let error):
      problems = [error.description]
      events?(.engineInterrupted(error))
    case .lameDuck: break
    }
    signal.fire()
  }

  /// Queries whether the engine keeps what it stores, and starts the watch.
  private func prepare() {
    guard check == nil else { return }
    watchEngine()
    check = EngineCheck(api, options, on: loop) { [weak self] result in
      guard let self, !isClosed else { return }
      switch result {
      case .ready:
        check = nil
        isRefused = false
        problems = []
        begin()
      case .waiting(let error): problems = [error.description]
      case .refused(let objections):
        isRefused = true
        problems = objections
        events?(.refused(objections))
      }
    }
    check?.start()
  }

  private func begin() {
    do throws(NATSError) {
      watch = try api.watch(
        ControlRecord.stream, matching: [ControlRecord.pattern], heartbeat: options.times.renewal
      ) { [weak self] event in self?.watched(event) }
    } catch {
      problems = [error.description]
      prepare()
    }
  }

  private func watchEngine() {
    guard engineWatch == nil else { return }
    engineWatch = EngineWatch(
      api, asksServers: !options.engineUnsafe, on: loop,
      streams: { [weak self] in self?.streamsToAsk() ?? [] }
    ) { [weak self] finding in
      switch finding {
      case .info(let result, let stream): self?.health.take(result, of: stream)
      case .servers(let servers): self?.health.take(servers)
      }
    }
    engineWatch?.start()
  }

  private func streamsToAsk() -> [String] {
    streamRounds.take(of: control.directory.shardCount ?? 0, urgent: health.inDoubt)
  }

  private func watched(_ event: JetStreamWatch.Event) {
    switch event {
    case .began, .interrupted: control.watchBegan()
    case .current: control.watchCurrent(at: loop.now)
    case .message(let message):
      let payload = message.removal == nil ? message.payload.text : ""
      let record = ControlRecord(
        subject: message.subject.text, payload: payload, sequence: message.sequence)
      if let record { control.observed(record, message.sequence, at: loop.now) }
    }
    signal.fire()
  }

  // MARK: Actions

  private func advance() {
    guard !isClosed else { return }
    defer { tellLease() }
    for action in control.takeActions(at: loop.now) {
      switch action {
      case .write(let write): send(write)
      case .read(let number, let record): read(number, record)
      case .check(let peer): check(peer)
      case .event(let event):
        tellLease()
        events?(event)
      }
      if isClosed { return }
    }
    leaveUselessServer()
    setTimer()
  }

  /// Changes to another server if this one answers nothing. A server that has lost contact with the other servers still accepts connections, while another
  /// one may have a majority. If it created the watch itself, it may keep sending heartbeats.
  private func leaveUselessServer() {
    let now = loop.now
    guard client.isConnected, !isRefused, !control.session.isValid(at: now),
      !control.isWatching || control.isAsking
    else {
      uselessSince = nil
      return
    }
    var since = uselessSince ?? now
    if let answer = control.lastAnswer { since = max(since, answer) }
    uselessSince = since
    guard now >= since + options.times.patience else { return }
    uselessSince = nil
    client.changeServer(
      NATSError(
        .unavailable,
        "the server hasn't served the lease for \(options.times.patience); another one is tried",
        server: client.server))
  }

  private func check(_ peer: PeerCheck) {
    checkPeer?(peer) { [weak self] problem in
      guard let self, !isClosed else { return }
      control.checked(peer, problem, at: loop.now)
      signal.fire()
    }
  }

  /// Checks a node again, because a link to it has failed.
  func doubt(_ node: String) {
    control.doubt(node, at: loop.now)
    signal.fire()
  }

  private func tellLease() {
    let end = isClosed ? nil : control.session.leaseEnd
    guard end != toldLease else { return }
    toldLease = end
    leaseChanged?(end)
  }

  private func setTimer() {
    if let timer { loop.cancel(timer) }
    let deadlines = [control.deadline(at: loop.now), uselessSince.map { $0 + options.times.patience }]
    timer = deadlines.compactMap(\.self).min().map { deadline in
      loop.schedule(at: deadline) { [weak self] in
        self?.timer = nil
        self?.advance()
      }
    }
  }

  private func send(_ write: ControlWrite) {
    var headers = NATSHeaders()
    do throws(NATSError) {
      if !control.flaw.leavesOut(write.record) {
        try headers.expectLastSequenceOfSubject(write.expected)
      }
      if case .node = write.record { headers.setTimeToLive(options.nodeRetention) }
      let message = NATSMessage(
        subject: write.record.subject, headers: headers, payload: Array(write.record.payload.utf8))
      try api.publish(message, to: ControlRecord.stream) { [weak self] result in
        if case .node = write.record { self?.health.renewed(result) }
        self?.finished(write.number, Self.outcome(of: result))
      }
    } catch {
      finished(write.number, .notStored)
    }
  }

  private static func outcome(of result: Result<PublishAcknowledgement, NATSError>) -> WriteOutcome {
    switch result {
    case .success(let acknowledgement): .stored(acknowledgement.sequence)
    case .failure(let error) where error.code == .wrongLastSequence: .refused
    case .failure(let error) where error.provesNothingWasStored: .notStored
    case .failure: .unknown
    }
  }

  private func finished(_ number: UInt64, _ outcome: WriteOutcome) {
    guard !isClosed else { return }
    control.finished(number, outcome, at: loop.now)
    signal.fire()
  }

  private func read(_ number: UInt64, _ record: ControlRecord) {
    do throws(NATSError) {
      try api.leaderMessage(.last(subject: record.subject), of: ControlRecord.stream) { [weak self] result in
        self?.wasRead(number, Self.outcome(of: result))
      }
    } catch {
      wasRead(number, .failed)
    }
  }

  private static func outcome(of result: Result<StoredMessage, NATSError>) -> ReadOutcome {
    switch result {
    case .success(let message):
      let isRemoval = message.headers["Nats-Marker-Reason"] != nil
      let payload = isRemoval ? "" : String(decoding: message.payload, as: UTF8.self)
      return ControlRecord(subject: message.subject, payload: payload, sequence: message.sequence)
        .map { .found($0, message.sequence) } ?? .failed
    case .failure(let error): return error.code == .messageNotFound ? .none : .failed
    }
  }

  private func wasRead(_ number: UInt64, _ outcome: ReadOutcome) {
    guard !isClosed else { return }
    control.read(number, outcome, at: loop.now)
    signal.fire()
  }
}

extension ClusterFlaw {
  func leavesOut(_ record: ControlRecord) -> Bool {
    switch (self, record) {
    case (.blindRenewal, .node): true
    case (.blindTake, .shard): true
    default: false
    }
  }
}
