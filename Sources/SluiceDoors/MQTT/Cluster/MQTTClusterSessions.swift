import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// The sessions of a cluster's clients, as one process has them: it writes what its connections do into the log of all nodes, and does what the log says.
///
/// ```
///  MQTTHub ── claim, state, release ──► MQTTLog ──► mqtt.sessions ──► the processes of all nodes
///          ◄── granted, lost ── MQTTRoster ◄── each record, when it has come back ──┘
/// ```
///
/// A connection's output that depends on a record goes out when the record has come back and counts: a process that the others take for gone sends nothing more.
// @unchecked: what is mutable belongs to `loop`, but for what is atomic.
final class MQTTClusterSessions: MQTTLogReader, @unchecked Sendable {
  static let topic = "mqtt.sessions"

  /// How long a connection waits for the one that has its session.
  private static let patience = Duration.seconds(5)
  private static let tickInterval = Duration.milliseconds(250)
  private static let sweepInterval = Duration.seconds(10)
  private static let snapshotPatience = Duration.seconds(60)
  private static let partBytes = 128 << 10

  /// The session is the connection's now, with what an earlier one has left.
  typealias Grant = @Sendable (MQTTClaim, MQTTKeptSession?) -> Void

  /// A connection that has a session, or waits for it.
  private struct Attachment {
    var key: MQTTHub.Key
    var connection: MQTTConnection
    var since: MonotonicTime
    /// Called when it has the session.
    var completion: Grant?
    /// What there was before it had the session, and when that was left.
    var former: (state: MQTTRosterState, leftAt: Int64?)?
    /// It is gone, and leaves the session as it was once it has it.
    var isGivenUp = false
  }

  let loop: any EventLoop
  private let cluster: DoorCluster
  private unowned let hub: MQTTHub
  private var log: MQTTLog!
  private var replica = MQTTRosterReplica()
  private var attachments: [UInt64: Attachment] = [:]
  private var outstanding = MQTTOutstandingRecords()
  /// The connections whose sessions there is no room for: what they have left meanwhile isn't kept either.
  private var unkept: Set<UInt64> = []
  private let lastNumber = Atomic<UInt64>(0)
  private let room = MQTTClusterRoom()
  private var effects: [MQTTRoster.Effect] = []

  /// This process, as the log knows it: another one when the others have taken it for gone.
  private var process: UInt64
  private var serial: UInt64 = 0
  private var hasBegun = false

  private var watch = MQTTProcessWatch()
  private var seized: [UInt64: MonotonicTime] = [:]
  private var nextSweep: MonotonicTime
  private var snapshotBegan: MonotonicTime?
  /// Wills that this process is to publish.
  private var mourning: Set<MQTTClaim> = []

  init(
    _ cluster: DoorCluster, _ hub: MQTTHub, on loop: any EventLoop,
    accept: @escaping (any ByteStream) -> Void
  ) {
    self.cluster = cluster
    self.hub = hub
    self.loop = loop
    process = UInt64.random(in: 1 ... .max)
    nextSweep = loop.now + Self.sweepInterval
    log = MQTTLog(
      Self.topic, reader: self, identity: "mqtt-sessions", name: "sessions of MQTT", on: loop, accept: accept)
  }

  func open() {
    sayHello()
    log.open()
    tick()
  }

  /// Whether this process is the one that does what one has to do for all.
  var isFirst: Bool { log.isCurrent && replica.isLoaded && living.first == process }

  // MARK: Connections. From any thread

  /// Whether there is room for more sessions, or for more in one.
  func hasRoom(growing: Bool) -> Bool { room.hasRoom(growing: growing) }

  /// How many sessions have clients that are away, and how many this process has found to be expired.
  var absences: (away: Int, expired: Int) {
    (room.awayCount.load(ordering: .relaxed), room.expiredCount.load(ordering: .relaxed))
  }

  /// A number for a connection's claim.
  func newNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }

  /// A connection wants a session.
  ///
  /// - Parameter completion: called on `loop` when it has it.
  func claim(
    _ number: UInt64, _ key: MQTTHub.Key, by connection: MQTTConnection, isClean: Bool,
    _ completion: @escaping Grant
  ) {
    loop.execute { [self] in
      attachments[number] = Attachment(
        key: key, connection: connection, since: loop.now, completion: completion)
      write(.claim(number: number, isClean: isClean), key)
    }
  }

  /// Keeps a connection's session.
  ///
  /// - Parameter completion: called on `loop` with whether it is kept, or there is no room for it; not where the connection hasn't the session any more.
  func put(
    _ session: MQTTKeptSession?, of key: MQTTHub.Key, _ number: UInt64,
    _ completion: @escaping @Sendable (Bool) -> Void
  ) {
    let state = MQTTRosterState(session)
    loop.execute { [self] in
      guard attachments[number] != nil else { return }
      write(.state(number: number, state), key)
      outstanding.append(serial, completion)
    }
  }

  /// A connection leaves its session.
  ///
  /// - Parameters:
  ///   - session: what is left of it, with the will that is to be published; nil for nothing.
  ///   - time: in milliseconds since 1970.
  func release(_ session: MQTTKeptSession?, of key: MQTTHub.Key, _ number: UInt64, at time: Int64) {
    let left = MQTTRosterState(session)
    loop.execute { [self] in
      guard attachments.removeValue(forKey: number) != nil else { return }
      seized[number] = nil
      write(.release(number: number, left, time: time, mourns: left.will != nil), key)
    }
  }

  /// A connection ends before its client was told that it has the session: everything is as it was before the claim.
  ///
  /// - Parameter time: in milliseconds since 1970.
  func giveUp(_ key: MQTTHub.Key, _ number: UInt64, at time: Int64) {
    loop.execute { [self] in
      guard attachments[number] != nil else { return }
      // The claim is in the log, or on its way there. What it leaves is known when it counts.
      attachments[number]?.isGivenUp = true
      if attachments[number]?.completion == nil { returnSession(of: number, at: time) }
    }
  }

  private func returnSession(of number: UInt64, at time: Int64) {
    guard let attachment = attachments.removeValue(forKey: number), let former = attachment.former else {
      return
    }
    seized[number] = nil
    write(
      .release(
        number: number, former.state, time: former.leftAt ?? time, mourns: former.state.will != nil),
      attachment.key)
    guard let bytes = former.state.will else { return }
    // The connection that has left the will doesn't publish it any more.
    let claim = MQTTClaim(process: process, number: number)
    mourning.insert(claim)
    publish(
      MQTTRosterWill(claim: claim, delay: former.state.willDelay, bytes: bytes), of: attachment.key,
      after: .seconds(Int64(former.state.willDelay)))
  }

  /// The will of a connection of this process was published, or can't be.
  func willDone(_ claim: MQTTClaim, _ key: MQTTHub.Key) {
    // Behind the record that makes it due.
    loop.execute { [self] in write(.willDone(claim), key) }
  }

  // MARK: The log

  private func write(_ kind: MQTTRosterRecord.Kind, _ key: MQTTHub.Key? = nil) {
    serial += 1
    let record = MQTTRosterRecord(process: process, serial: serial, kind: kind)
    var batch = BatchBuilder()
    let (key, value) = (key?.encoded ?? [], record.encoded)
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        // Keys and values are far below the limits of a record.
        try? unsafe batch.append(key: key, headers: [], payload: value)
      }
    }
    log.append(batch.bytes)
  }

  private func sayHello() {
    write(.hello(node: cluster.node, time: loop.wallClock))
  }

  func logBegan(first: UInt64) {
    replica.begin(first: first)
    if hasBegun { beginAgain() }
    hasBegun = true
  }

  func logHas(_ record: BatchIterator.Record, at offset: UInt64) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let name = unsafe attributes.key, let entry = unsafe MQTTRosterRecord(decoding: attributes.payload)
    else { return }
    let key = unsafe MQTTHub.Key(decoding: name)
    let (tally, former) = (replica.roster.tally, key.flatMap(replica.roster.cost(of:)))
    let counts = replica.take(entry, of: key, at: offset, &effects)
    room.note(replica.roster, hub.limits)
    perform()
    guard entry.process == process else { return }
    let isKept = key.map { !counts || fits($0, entry.kind, former, beside: tally) } ?? true
    if !isKept, let key { endUnkept(key, entry.kind) }
    let completion = outstanding.take(entry.serial)
    if counts { completion?(isKept) }
    if case .snapshotEnd(let offset, _) = entry.kind {
      snapshotBegan = nil
      log.trim(before: offset)
    }
  }

  /// Whether there was room for what a record of this process keeps of a session.
  private func fits(
    _ key: MQTTHub.Key, _ kind: MQTTRosterRecord.Kind, _ former: Int?, beside tally: MQTTSessionTally
  ) -> Bool {
    var isUnkept = false
    if case .release(let number, _, _, _) = kind { isUnkept = unkept.remove(number) != nil }
    guard let cost = replica.roster.cost(of: key) else { return true }
    return !isUnkept && hub.limits.haveRoom(for: cost, former, beside: tally)
  }

  /// Ends a session of this process whose record has gone beyond the limits. The order of the log decides which one: all that is kept was within them.
  private func endUnkept(_ key: MQTTHub.Key, _ kind: MQTTRosterRecord.Kind) {
    switch kind {
    case .state(let number, let state):
      unkept.insert(number)
      write(.state(number: number, MQTTRosterState(will: state.will, willDelay: state.willDelay)), key)
    case .release(_, _, let time, _): write(.expired(leftAt: time), key)
    default: return
    }
    hub.note(.mqttSessionEnded(client: key.clientID, identity: key.identity))
  }

  func logContinues() {}

  // Trimmed are records that a snapshot has.
  func logSkipped(to offset: UInt64) {}

  func logIsCurrent() {
    replica.isCurrent(&effects)
    room.note(replica.roster, hub.limits)
    perform()
  }

  private func perform() {
    guard !effects.isEmpty else { return }
    let now = effects
    effects = []
    for effect in now { perform(effect) }
  }

  private func perform(_ effect: MQTTRoster.Effect) {
    switch effect {
    case .granted(_, let claim, let state, let leftAt, let former):
      guard claim.process == process else { return }
      guard let completion = attachments[claim.number]?.completion.take() else { return }
      attachments[claim.number]?.former = (former ?? state, leftAt)
      if attachments[claim.number]?.isGivenUp == true {
        return returnSession(of: claim.number, at: loop.wallClock)
      }
      var kept = state.bytes.isEmpty ? nil : try? MQTTKeptSession(decoding: state.bytes)
      kept?.leftAt = leftAt
      if let expires = kept?.expires, loop.wallClock >= expires { kept = nil }
      seized[claim.number] = nil
      completion(claim, kept)
    case .lost(_, let claim, let isClean):
      guard claim.process == process, let connection = attachments[claim.number]?.connection else { return }
      // It doesn't get the session any more, so there is nothing to leave.
      if attachments[claim.number]?.isGivenUp == true { return attachments[claim.number] = nil }
      connection.loop.execute { connection.surrender(isClean: isClean) }
    case .gone(let gone):
      watch.forget(gone)
      if gone == process { beginAgain() }
    case .willDropped(let key, let claim):
      mourning.remove(claim)
      if claim.process == process { hub.settleWill(of: key, publishing: false) }
    case .willNow(let key, let claim):
      if claim.process == process { return hub.settleWill(of: key, publishing: true) }
      mourning.remove(claim)
      mourn()
    case .willsChanged: mourn()
    }
  }

  /// The others take this process for gone: its connections end, and it is another one from now on.
  private func beginAgain() {
    process = UInt64.random(in: 1 ... .max)
    serial = 0
    let lost = attachments.values.map(\.connection)
    attachments = [:]
    outstanding.removeAll()
    unkept = []
    seized = [:]
    for connection in lost { connection.loop.execute { connection.loseSession() } }
    sayHello()
  }

  // MARK: Times

  /// The processes whose nodes live, as far as this one knows.
  private var living: [UInt64] { watch.living(among: replica.roster.processes.keys) }

  private func tick() {
    _ = loop.schedule(after: Self.tickInterval) { [weak self] in self?.tick() }
    guard log.isCurrent, replica.isLoaded else { return watch.reset() }
    lookForMissing()
    seize()
    if loop.now >= nextSweep {
      nextSweep = loop.now + Self.sweepInterval
      sweep()
    }
    takeSnapshot()
  }

  private func lookForMissing() {
    guard let nodes = cluster.otherNodes(loop.now) else { return watch.reset() }
    let others = replica.roster.processes.lazy.filter { [process] in $0.key != process }
    watch.look(at: others.map { ($0.key, $0.value.node) }, nodes, now: loop.now)
    guard living.first == process else { return }
    for gone in watch.takeDue(now: loop.now) { write(.gone(process: gone, time: loop.wallClock)) }
  }

  /// Takes sessions that their connections don't leave.
  private func seize() {
    let now = loop.now
    for (number, attachment) in attachments where attachment.completion != nil && !attachment.isGivenUp {
      let last = seized[number] ?? attachment.since
      let claim = MQTTClaim(process: process, number: number)
      guard now >= last + Self.patience, replica.roster.entries[attachment.key]?.waiting?.claim == claim
      else {
        continue
      }
      seized[number] = now
      write(.seize(number: number), attachment.key)
    }
  }

  /// Ends sessions whose time is over.
  private func sweep() {
    let (time, living) = (loop.wallClock, living)
    for (key, entry) in replica.roster.entries {
      guard let leftAt = entry.leftAt, let expires = entry.expires, time >= expires,
        !entry.state.bytes.isEmpty, MQTTRoster.responsible(for: key, among: living) == process
      else { continue }
      room.expiredCount.add(1, ordering: .relaxed)
      write(.expired(leftAt: leftAt), key)
    }
  }

  /// Keeps the log short.
  private func takeSnapshot() {
    let length = log.nextOffset - min(log.nextOffset, max(log.firstOffset, replica.snapshotOffset))
    let limit = UInt64(replica.roster.entries.count * 4 + 4096)
    guard length > limit, living.first == process else { return }
    if let snapshotBegan, loop.now < snapshotBegan + Self.snapshotPatience { return }
    snapshotBegan = loop.now
    let offset = log.nextOffset
    let parts = replica.roster.snapshot(partBytes: Self.partBytes)
    for (index, part) in parts.enumerated() {
      write(.snapshot(offset: offset, part: UInt32(index), bytes: part))
    }
    write(.snapshotEnd(offset: offset, parts: UInt32(parts.count)))
  }

  // MARK: Wills of processes that have ended

  private func mourn() {
    guard replica.isLoaded else { return }
    let living = living
    for key in replica.roster.bereaved
    where MQTTRoster.responsible(for: key, among: living) == process {
      for will in replica.roster.entries[key]?.due ?? [] {
        // A process that lives publishes its own.
        guard replica.roster.processes[will.claim.process] == nil else { continue }
        if mourning.insert(will.claim).inserted { publish(will, of: key, after: .seconds(Int64(will.delay))) }
      }
    }
  }

  private func publish(_ will: MQTTRosterWill, of key: MQTTHub.Key, after delay: Duration) {
    _ = loop.schedule(after: delay) { [weak self] in
      guard let self, mourning.contains(will.claim),
        replica.roster.entries[key]?.due.contains(where: { $0.claim == will.claim }) ?? false
      else { return }
      guard let message = MQTTConnect.Will(roster: will.bytes) else { return done(will, key) }
      hub.publish(message, of: key, producer: will.claim.producer, on: loop) { [weak self] isOver in
        guard let self else { return }
        if isOver { done(will, key) } else { publish(will, of: key, after: .seconds(1)) }
      }
    }
  }

  private func done(_ will: MQTTRosterWill, _ key: MQTTHub.Key) {
    guard mourning.remove(will.claim) != nil else { return }
    write(.willDone(will.claim), key)
  }
}
