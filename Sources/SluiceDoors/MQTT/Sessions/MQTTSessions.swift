import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// A process' access to the sessions of all MQTT clients: it writes the actions of its connections into a log, and performs the effects of the log's records.
///
/// ```
///  MQTTHub ── claim, state, release ──► MQTTRosterLog ─► TopicPort ──► mqtt.sessions ──► the processes of all nodes
///          ◄── granted, lost ── MQTTRoster ◄── each record, once read back ─────────────────┘
/// ```
///
/// A broker of one node is a cluster of one.
///
/// Output of a connection that depends on a record is sent once the record has been read back and counts. So a process that the others have declared ended
/// sends no more of it.
// @unchecked: mutable state belongs to `loop`, except for atomics.
final class MQTTSessions: MQTTRosterLogUser, @unchecked Sendable {
  /// How long clients without a session wait for the log to be read.
  private static let logPatience = Duration.seconds(10)

  typealias Grant = MQTTAttachments.Grant

  let loop: any EventLoop
  /// Whether sessions outlive the process.
  let isDurable: Bool
  private let cluster: DoorCluster?
  private unowned let hub: MQTTHub
  private let log: MQTTRosterLog
  private var attachments = MQTTAttachments()
  /// Completions that wait for records of this process, by serial. They are called with whether the session is kept, which is known once the record counts.
  private var outstanding: [UInt64: (completion: @Sendable (Bool) -> Void, isKept: Bool?)] = [:]
  private var storedSerial: UInt64 = 0
  private var unkept = MQTTUnkeptSessions()
  private let lastNumber = Atomic<UInt64>(0)
  private let room = MQTTSessionRoom()

  /// Clients that wait until the log has been read; nil once it has.
  private var arrivals: [() -> Void]? = []

  private let care: MQTTRosterCare

  /// - Parameters:
  ///   - cluster: nil for a broker of one node.
  ///   - isStored: whether the broker has a store.
  ///   - accept: passes a connection to the broker, on `loop`.
  init(
    _ cluster: DoorCluster?, _ hub: MQTTHub, isStored: Bool, on loop: any EventLoop,
    accept: @escaping (any ByteStream) -> Void
  ) {
    self.cluster = cluster
    self.hub = hub
    self.loop = loop
    isDurable = isStored
    log = MQTTRosterLog(node: cluster?.node, isStored: isStored, on: loop, accept: accept)
    care = MQTTRosterCare(log, cluster) { [weak hub, loop] will, key, producer, completion in
      hub?.publish(will, of: key, producer: producer, on: loop, completion)
    }
  }

  func open() {
    log.open(for: self)
    _ = loop.schedule(after: Self.logPatience) { [weak self] in self?.serve() }
    care.begin { [weak self] in self?.seize() }
  }

  /// Whether this process does the work that one process does for all.
  var isFirst: Bool { care.isFirst }

  private func serve() {
    let bodies = arrivals.take() ?? []
    for body in bodies { body() }
  }

  // MARK: Connections. From any thread

  /// Returns whether there is room for further sessions, or for the growth of one.
  func hasRoom(growing: Bool) -> Bool { room.hasRoom(growing: growing) }

  /// How many sessions have no connection, and how many expired ones this process has ended.
  var absences: (away: Int, expired: Int) {
    (room.awayCount.load(ordering: .relaxed), care.expiredCount.load(ordering: .relaxed))
  }

  /// A number for a connection's claim.
  func newNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }

  /// Runs a job of the calling connection, in the order of its jobs.
  private func perform(_ job: @escaping @Sendable () -> Void) {
    if loop.isCurrent { job() } else { loop.execute(job) }
  }

  /// Claims a session for a connection.
  ///
  /// - Parameters:
  ///   - isKept: whether some state of the session is to be kept. Otherwise, on a single node, the connection needs a claim only if there is an earlier
  ///     session.
  ///   - completion: called on `loop` when the connection has the session.
  func claim(
    _ number: UInt64, _ key: MQTTHub.Key, by handle: MQTTHandle, isClean: Bool, isKept: Bool,
    _ completion: @escaping Grant
  ) {
    perform { [self] in
      if isKept || cluster != nil { return claim(number, key, handle, isClean, completion) }
      let body = { [self] in
        guard log.roster.entries.contains(key) else { return completion(nil, nil) }
        claim(number, key, handle, isClean, completion)
      }
      if arrivals == nil { body() } else { arrivals?.append(body) }
    }
  }

  private func claim(
    _ number: UInt64, _ key: MQTTHub.Key, _ handle: MQTTHandle, _ isClean: Bool, _ completion: @escaping Grant
  ) {
    attachments.add(number, .init(key: key, handle: handle, since: loop.now, completion: completion))
    log.write(.claim(number: number, isClean: isClean), key)
  }

  /// Stores a connection's session.
  ///
  /// - Parameter completion: called on `loop` with whether it is kept, false if there is no room for it; not called if the connection no longer has the
  ///   session.
  func put(
    _ session: MQTTKeptSession?, of key: MQTTHub.Key, _ number: UInt64,
    _ completion: @escaping @Sendable (Bool) -> Void
  ) {
    let state = MQTTRosterState(session)
    perform { [self] in
      guard attachments[number] != nil else { return }
      outstanding[log.serial + 1] = (completion, nil)
      log.write(.state(number: number, state), key)
    }
  }

  /// A connection leaves its session.
  ///
  /// - Parameters:
  ///   - session: its remaining state, with the will to publish; nil for none.
  ///   - time: in milliseconds since 1970.
  func release(_ session: MQTTKeptSession?, of key: MQTTHub.Key, _ number: UInt64, at time: Int64) {
    let left = MQTTRosterState(session)
    perform { [self] in
      guard attachments.remove(number) != nil else { return }
      log.write(.release(number: number, left, time: time, mourns: left.will != nil), key)
    }
  }

  /// A connection ends before its client got CONNACK: restores the state before the claim.
  ///
  /// - Parameter time: in milliseconds since 1970.
  func giveUp(_ key: MQTTHub.Key, _ number: UInt64, at time: Int64) {
    perform { [self] in
      if attachments.giveUp(number) { returnSession(of: number, at: time) }
    }
  }

  private func returnSession(of number: UInt64, at time: Int64) {
    guard let attachment = attachments.remove(number), let former = attachment.former else { return }
    // The connection that left the will no longer publishes it.
    let claim = MQTTClaim(process: log.process, number: number)
    if let bytes = former.state.will {
      care.wills.take(
        MQTTRosterWill(claim: claim, delay: former.state.willDelay, bytes: bytes), of: attachment.key)
    }
    log.write(
      .release(
        number: number, former.state, time: former.leftAt ?? time, mourns: former.state.will != nil),
      attachment.key)
  }

  /// The will of a connection of this process was published, or can't be.
  func willDone(_ claim: MQTTClaim, _ key: MQTTHub.Key) {
    // After the record that makes it due.
    perform { [self] in log.write(.willDone(claim), key) }
  }

  // MARK: The log

  func rosterTook(
    _ record: MQTTRosterRecord, of key: MQTTHub.Key?, counts: Bool, tally: MQTTSessionTally, cost: Int?
  ) {
    room.note(log.roster, hub.limits)
    var isKept = true
    if counts, let key {
      isKept = unkept.keeps(
        record.kind, log.roster.cost(of: key), instead: cost, beside: tally, within: hub.limits)
      if !isKept { endUnkept(key, record.kind) }
    }
    if counts { outstanding[record.serial]?.isKept = isKept } else { outstanding[record.serial] = nil }
    care.keepShort()
  }

  func rosterStored(through serial: UInt64) {
    while storedSerial < serial {
      storedSerial += 1
      guard let stored = outstanding.removeValue(forKey: storedSerial), let isKept = stored.isKept else {
        continue
      }
      stored.completion(isKept)
    }
  }

  /// Ends a session of this process whose record exceeded the limits. The order of the log decides which session this is: all earlier ones were within them.
  private func endUnkept(_ key: MQTTHub.Key, _ kind: MQTTRosterRecord.Kind) {
    switch kind {
    case .state(let number, let state):
      log.write(.state(number: number, MQTTRosterState(will: state.will, willDelay: state.willDelay)), key)
    case .release(_, _, let time, _): log.write(.expired(leftAt: time), key)
    default: return
    }
    hub.note(.mqttSessionEnded(client: key.clientID, identity: key.identity))
  }

  func rosterIsCurrent() {
    room.note(log.roster, hub.limits)
    serve()
    care.mourn()
  }

  func rosterHas(_ effects: [MQTTRoster.Effect]) {
    room.note(log.roster, hub.limits)
    for effect in effects { perform(effect) }
  }

  func rosterBeganAnew() { beginAgain() }

  private func perform(_ effect: MQTTRoster.Effect) {
    switch effect {
    case .granted(_, let claim, let state, let leftAt, let former):
      guard claim.process == log.process else { return }
      guard let completion = attachments.grant(claim.number, former ?? state, leftAt: leftAt) else {
        return
      }
      if attachments[claim.number]?.isGivenUp == true {
        return returnSession(of: claim.number, at: loop.wallClock)
      }
      var kept = state.bytes.isEmpty ? nil : try? MQTTKeptSession(decoding: state.bytes)
      kept?.leftAt = leftAt
      if let expires = kept?.expires, loop.wallClock >= expires { kept = nil }
      completion(claim, kept)
    case .lost(_, let claim, let isClean):
      guard claim.process == log.process, let handle = attachments[claim.number]?.handle else { return }
      // The connection no longer gets the session, so it has nothing to leave.
      if attachments[claim.number]?.isGivenUp == true { return _ = attachments.remove(claim.number) }
      handle.loop.execute { handle.connection?.surrender(isClean: isClean) }
    case .gone(let gone):
      care.forget(gone)
      if gone == log.process { beginAgain() }
    case .willDropped(let key, let claim):
      care.wills.drop(claim)
      if claim.process == log.process { hub.settleWill(of: key, publishing: false) }
    case .willNow(let key, let claim):
      if claim.process == log.process { return hub.settleWill(of: key, publishing: true) }
      care.wills.drop(claim)
      care.mourn()
    case .willsChanged: care.mourn()
    }
  }

  /// The other processes have declared this one ended: closes its connections, and continues as a new process in the log.
  private func beginAgain() {
    let lost = attachments.removeAll().map(\.handle)
    (outstanding, storedSerial) = ([:], 0)
    unkept = MQTTUnkeptSessions()
    for handle in lost { handle.loop.execute { handle.connection?.loseSession() } }
    log.beginAgain()
  }

  /// Takes over sessions whose connections don't leave them in time.
  private func seize() {
    let impatient = attachments.takeImpatient(now: loop.now) { [log] number, key in
      log.roster.entries[key]?.waiting?.claim == MQTTClaim(process: log.process, number: number)
    }
    for (number, key) in impatient { log.write(.seize(number: number), key) }
  }
}
