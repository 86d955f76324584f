import SluiceIO
import SluiceNATS
import SluiceSimulation

/// A stream of the model: its committed contents, its leader's writes in progress, and its replicas.
final class EngineStream {
  private struct Proposal {
    let operation: StreamContents.Operation
    let due: MonotonicTime
    /// Called on commit, if the leader is still the same.
    let committed: () -> Void
  }

  private struct Batch {
    var messages: [ModelMessage] = []
    var began: MonotonicTime
    var isBroken = false
  }

  private final class Replica {
    var contents: StreamContents
    var applied = 0

    init(_ contents: StreamContents) {
      self.contents = contents
    }
  }

  let name: String
  unowned let engine: EngineModel
  private(set) var leader: EngineServerModel?
  private(set) var committed: StreamContents
  /// The committed contents plus the writes in progress: the leader checks expectations against this.
  private var tentative: StreamContents
  private var proposals: [Proposal] = []
  private var operations: [(operation: StreamContents.Operation, time: MonotonicTime)] = []
  private var replicas: [Replica]
  private var batches: [String: Batch] = [:]
  /// Incremented by each election of a leader.
  private var generation = 0
  private var isElecting = false
  private var isWaitingForExpiry = false
  var consumers: [String: EngineConsumer] = [:]

  init(_ configuration: StreamConfiguration, of engine: EngineModel) {
    name = configuration.name
    self.engine = engine
    committed = StreamContents(configuration)
    tentative = committed
    replicas = engine.servers.map { _ in Replica(StreamContents(configuration)) }
    elect()
  }

  var configuration: StreamConfiguration { tentative.configuration }
  var subjects: [String] { configuration.subjects }

  // MARK: Leaders

  func availabilityChanged() {
    if leader.map({ !$0.isAvailable }) ?? true { loseLeader() } else { commitSoon() }
    for consumer in consumers.values.sorted(by: { $0.name < $1.name }) { consumer.pump() }
  }

  /// The stream gets another leader after a while.
  func loseLeader() {
    // A leader that is merely paused doesn't notice, and answers once it continues.
    guard !isElecting else { return }
    isElecting = true
    engine.note("\(name): an election begins")
    engine.runOnControl(after: engine.world.random.next(in: engine.faults.election)) { [weak self] in
      self?.elect()
    }
  }

  private func elect() {
    isElecting = false
    let candidates = engine.servers.filter(\.isAvailable)
    guard engine.hasQuorum else { return leader = nil }
    // The log is a prefix of the former leader's writes in progress.
    let count = proposals.isEmpty ? 0 : engine.world.random.next(in: 0...proposals.count)
    for proposal in proposals.prefix(count) { commit(proposal.operation) }
    proposals = []
    batches = [:]
    generation += 1
    tentative = committed
    engine.routesChanged()
    leader = candidates[engine.world.random.next(in: 0...(candidates.count - 1))]
    engine.note("\(name): \(leader!.name) leads")
    catchUp(leader!)
    planExpiry()
  }

  /// The present state of a server's replica.
  func view(of server: EngineServerModel) -> StreamContents {
    let replica = replicas[engine.servers.firstIndex { $0 === server }!]
    while replica.applied < operations.count,
      operations[replica.applied].time + server.lag <= engine.world.now
    {
      replica.contents.apply(operations[replica.applied].operation)
      replica.applied += 1
    }
    return replica.contents
  }

  private func catchUp(_ server: EngineServerModel) {
    let replica = replicas[engine.servers.firstIndex { $0 === server }!]
    while replica.applied < operations.count {
      replica.contents.apply(operations[replica.applied].operation)
      replica.applied += 1
    }
  }

  private func commit(_ operation: StreamContents.Operation) {
    committed.apply(operation)
    operations.append((operation, engine.world.now))
    switch operation {
    case .store(let messages): for message in messages { engine.committed(name, message) }
    case .expire(_, let marker?): engine.committed(name, marker)
    default: break
    }
    for consumer in consumers.values.sorted(by: { $0.name < $1.name }) { consumer.pumpWhenApplied() }
  }

  // MARK: Writes

  /// Accepts a message for one of the stream's subjects.
  ///
  /// - Returns: false if there is no leader to accept it.
  func take(_ message: ModelMessage) -> Bool {
    guard let leader, leader.isRunning else { return engine.world.random.oneIn(2) }
    if !message.reply.isEmpty {
      if engine.world.random.oneIn(engine.faults.silentOneIn) { return true }
      if engine.world.random.oneIn(engine.faults.refusedOneIn) { return false }
    }
    engine.run(on: leader) { [weak self] in self?.lead(message, as: leader) }
    return true
  }

  /// Called on the loop of `server`, which was the leader when the message was sent.
  private func lead(_ message: ModelMessage, as server: EngineServerModel) {
    // A former leader can't commit.
    guard server === leader else { return }
    guard let id = message["Nats-Batch-Id"] else { return publish([message], reply: message, as: server) }
    guard configuration.allowsAtomicBatches else {
      return refuse(message, 400, 10174, "atomic publish is disabled", as: server)
    }
    guard let number = message.number("Nats-Batch-Sequence") else {
      return refuse(message, 400, 10175, "atomic publish sequence is missing", as: server)
    }
    var batch = batches[id] ?? Batch(began: server.loop.now)
    if number != batch.messages.count + 1 || server.loop.now - batch.began > .seconds(10) {
      batch.isBroken = true
    }
    batch.messages.append(message)
    batches[id] = batch
    guard message["Nats-Batch-Commit"] == "1" else { return }
    batches[id] = nil
    guard !batch.isBroken else {
      return refuse(message, 400, 10176, "atomic publish batch is incomplete", as: server)
    }
    guard batch.messages.count <= JetStream.maximumBatch else {
      return refuse(message, 400, 10199, "atomic publish batch is too large: 1000", as: server)
    }
    publish(batch.messages, reply: message, as: server, batch: id)
  }

  private func refuse(
    _ request: ModelMessage, _ code: Int, _ number: Int, _ text: String, as server: EngineServerModel
  ) {
    engine.answer(
      request,
      #"{"error":{"code":\#(code),"err_code":\#(number),"description":"\#(text)"},"stream":"\#(name)","seq":0}"#,
      from: server)
  }

  private func publish(
    _ messages: [ModelMessage], reply request: ModelMessage, as server: EngineServerModel,
    batch: String? = nil
  ) {
    let now = engine.wallClock
    var subjects: Set<String> = []
    for message in messages {
      if let (code, number, text) = objection(to: message) {
        return refuse(request, code, number, text, as: server)
      }
      // A roll-up can't replace messages of the same batch.
      if !subjects.insert(message.subject).inserted, message["Nats-Rollup"] != nil {
        return refuse(request, 500, 10111, "rollup can not purge batched messages", as: server)
      }
    }
    if batch == nil, let id = messages[0]["Nats-Msg-Id"], let sequence = tentative.duplicate(of: id, at: now)
    {
      return engine.answer(
        request, #"{"stream":"\#(name)","seq":\#(sequence),"duplicate":true}"#, from: server)
    }
    var stored: [StreamContents.Message] = []
    for (index, message) in messages.enumerated() {
      var message = message
      message.reply = ""
      let sequence = tentative.lastSequence + UInt64(index) + 1
      let life = message["Nats-TTL"].flatMap(Self.timeToLive)
      stored.append(.init(sequence: sequence, message: message, time: now, expiry: life.map { now + $0 }))
    }
    let last = stored[stored.count - 1].sequence
    let suffix = batch.map { #","batch":"\#($0)","count":\#(messages.count)"# } ?? ""
    let answer = #"{"stream":"\#(name)","seq":\#(last)\#(suffix)}"#
    propose(.store(stored), as: server) { [weak self] in self?.engine.answer(request, answer, from: server) }
    planExpiry()
  }

  /// Why a message can't be stored: code, number and text.
  private func objection(to message: ModelMessage) -> (Int, Int, String)? {
    if let expected = message["Nats-Expected-Stream"], expected != name {
      return (400, 10060, "expected stream does not match")
    }
    if let expected = message.number("Nats-Expected-Last-Sequence"), expected != tentative.lastSequence {
      return (400, 10071, "wrong last sequence: \(tentative.lastSequence)")
    }
    if let expected = message.number("Nats-Expected-Last-Subject-Sequence") {
      let pattern = message["Nats-Expected-Last-Subject-Sequence-Subject"] ?? message.subject
      let last = tentative.lastSequence(matching: pattern)
      if expected != last { return (400, 10071, "wrong last sequence: \(last)") }
    }
    if let time = message["Nats-TTL"] {
      guard configuration.allowsTimeToLive else { return (400, 10166, "per-message TTL is disabled") }
      guard Self.timeToLive(time) != nil else { return (400, 10165, "invalid per-message TTL") }
    }
    if message["Nats-Rollup"] != nil, !configuration.allowsRollUp {
      return (400, 10111, "rollup not permitted")
    }
    let limit = configuration.maximumBytes
    if limit > 0, configuration.discard == .new, tentative.bytes + message.payload.count > limit {
      return (400, 10077, "maximum bytes exceeded")
    }
    if engine.isFull { return (503, 10023, "insufficient resources") }
    return nil
  }

  /// In nanoseconds; nil for anything below a second.
  private static func timeToLive(_ text: String) -> Int64? {
    guard let seconds = Int64(text.hasSuffix("s") ? String(text.dropLast()) : text), seconds > 0 else {
      return nil
    }
    return seconds * 1_000_000_000
  }

  func propose(
    _ operation: StreamContents.Operation, as server: EngineServerModel, _ committed: @escaping () -> Void
  ) {
    tentative.apply(operation)
    if case .configure = operation { engine.routesChanged() }
    let due = engine.world.now + engine.world.random.next(in: engine.faults.commit)
    proposals.append(Proposal(operation: operation, due: due, committed: committed))
    commitSoon()
  }

  /// Commits writes that are due, on the leader's loop.
  private func commitSoon() {
    guard let leader, let first = proposals.first else { return }
    let generation = generation
    engine.run(on: leader, after: max(first.due - engine.world.now, .zero)) { [weak self] in
      guard let self, generation == self.generation, leader === self.leader else { return }
      commitDue()
    }
  }

  private func commitDue() {
    guard engine.hasQuorum else { return }
    while let first = proposals.first, first.due <= engine.world.now {
      proposals.removeFirst()
      commit(first.operation)
      if let leader { catchUp(leader) }
      first.committed()
    }
    commitSoon()
  }

  // MARK: Time to live

  /// The engine checks once a second.
  private func planExpiry() {
    guard !isWaitingForExpiry, let leader, tentative.hasExpiring else { return }
    isWaitingForExpiry = true
    engine.runOnControl(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      isWaitingForExpiry = false
      if let leader = self.leader, leader.isAvailable {
        engine.run(on: leader) { [weak self] in self?.expire() }
      }
      planExpiry()
    }
    _ = leader
  }

  private func expire() {
    guard let leader, leader.isAvailable else { return }
    let now = engine.wallClock
    while let message = tentative.expired(at: now) {
      var marker: StreamContents.Message?
      if let life = configuration.deleteMarkerTimeToLive, tentative.last(of: message.subject) == message,
        message.message["Nats-Marker-Reason"] == nil
      {
        marker = StreamContents.Message(
          sequence: tentative.lastSequence + 1,
          message: ModelMessage(
            message.subject,
            headers: [("Nats-Marker-Reason", "MaxAge"), ("Nats-TTL", "\(life / 1_000_000_000)s")]),
          time: now, expiry: now + life)
      }
      propose(.expire(message.sequence, marker: marker), as: leader) {}
    }
  }

  // MARK: Requests of the API

  /// Runs `body` at the leader. Without one, there is no reply.
  func askLeader(_ body: @escaping (EngineServerModel, StreamContents) -> Void) {
    guard let leader, leader.isRunning else { return }
    engine.run(on: leader) { [weak self] in
      guard let self else { return }
      // A former leader may reply with its old state.
      guard leader === self.leader || engine.world.random.oneIn(2) else { return }
      body(leader, view(of: leader))
    }
  }

  func purgeCount(_ pattern: String?, before sequence: UInt64?) -> Int {
    tentative.purgeCount(pattern: pattern, before: sequence)
  }
}
