import SluiceWire

/// The sessions of all clients: which connection of which process holds each, and its stored state.
///
/// A value that is determined by the records of the log alone: every process that has read the same records has the same roster. A session has one holder,
/// and at most one connection that waits for it.
///
/// ```
///             claim, if unheld                   release, seize, gone
///   absent ──────────────────────────► held ───────────────────────────► kept, or absent
///                                       │ ▲                                │
///             claim: the last one waits ▼ │ release, seize, gone           │ claim
///                                     held, and one waits                  ▼
///                                                                         held
/// ```
struct MQTTRoster: Equatable, Sendable {
  struct Process: Hashable, Sendable {
    var node: String
    /// Of its last record.
    var serial: UInt64
  }

  struct Waiting: Hashable, Sendable {
    var claim: MQTTClaim
    var isClean: Bool
  }

  struct Entry: Hashable, Sendable {
    var holder: MQTTClaim?
    var waiting: Waiting?
    /// As its holder last wrote it.
    var state = MQTTRosterState()
    /// When its last connection ended, in milliseconds since 1970; nil while it has one.
    var leftAt: Int64?
    /// Wills to publish.
    var due: [MQTTRosterWill] = []

    var isEmpty: Bool { holder == nil && waiting == nil && state.bytes.isEmpty && due.isEmpty }
  }

  /// An effect of a record.
  enum Effect: Hashable, Sendable {
    /// The connection now holds the session: the state that an earlier one has left, and when. If the client gets no CONNACK, the connection must leave
    /// `former` instead, which includes a will that waited; nil if both are the same.
    case granted(MQTTHub.Key, MQTTClaim, MQTTRosterState, leftAt: Int64?, former: MQTTRosterState? = nil)
    /// Another connection claims the session, so this one must leave it. Clean: the session ends.
    case lost(MQTTHub.Key, MQTTClaim, isClean: Bool)
    /// The other processes have declared this process ended: its later records don't count.
    case gone(process: UInt64)
    /// The client of a waiting will has reconnected.
    case willDropped(MQTTHub.Key, MQTTClaim)
    /// The session of a waiting will has ended.
    case willNow(MQTTHub.Key, MQTTClaim)
    /// Processes have begun or ended, so another process may have to publish the wills of ended ones.
    case willsChanged
  }

  private(set) var processes: [UInt64: Process] = [:]
  private(set) var entries = MQTTRosterEntries()
  /// Counts the stored sessions, with and without connections.
  private(set) var tally = MQTTSessionTally()
  /// How many of these have no connection.
  private(set) var awayCount = 0
  /// The sessions with wills to publish.
  private(set) var bereaved: Set<MQTTHub.Key> = []

  /// The bytes that a session counts towards the limit; nil if it isn't stored.
  func cost(of key: MQTTHub.Key) -> Int? {
    entries.size(of: key).map { MQTTSessionTally.cost(of: $0, key) }
  }

  /// Returns whether a connection holds the session.
  func has(_ claim: MQTTClaim, _ key: MQTTHub.Key) -> Bool { entries[key]?.holder == claim }

  // MARK: Records

  /// Applies a record. Effects are appended in order.
  ///
  /// - Returns: whether it counts. Records of an ended process, repeated records, and states of a session from any connection but its holder don't.
  @discardableResult
  mutating func apply(_ record: MQTTRosterRecord, of key: MQTTHub.Key?, _ effects: inout [Effect]) -> Bool {
    if case .hello(let node, let time) = record.kind, processes[record.process] == nil {
      begin(record.process, node, record.serial, at: time, &effects)
      return true
    }
    guard let last = processes[record.process]?.serial, record.serial > last else { return false }
    processes[record.process]?.serial = record.serial
    switch record.kind {
    case .hello, .snapshot, .snapshotEnd: return true
    case .gone(let process, let time): return end(process, at: time, &effects)
    default:
      guard let key else { return false }
      return apply(record, to: key, &effects)
    }
  }

  private mutating func apply(
    _ record: MQTTRosterRecord, to key: MQTTHub.Key, _ effects: inout [Effect]
  ) -> Bool {
    var entry = entries[key] ?? Entry()
    let counts = apply(record, to: &entry, key, &effects)
    set(entry, key)
    return counts
  }

  private func apply(
    _ record: MQTTRosterRecord, to entry: inout Entry, _ key: MQTTHub.Key, _ effects: inout [Effect]
  ) -> Bool {
    func claim(_ number: UInt64) -> MQTTClaim { MQTTClaim(process: record.process, number: number) }
    switch record.kind {
    case .claim(let number, let isClean):
      if let former = entry.waiting { effects.append(.lost(key, former.claim, isClean: isClean)) }
      entry.waiting = Waiting(claim: claim(number), isClean: isClean)
      if let holder = entry.holder {
        effects.append(.lost(key, holder, isClean: isClean))
      } else {
        Self.grant(&entry, key, &effects)
      }
    case .state(let number, let state):
      guard entry.holder == claim(number) else { return false }
      entry.state = state
    case .release(let number, let state, let time, let mourns):
      if entry.waiting?.claim == claim(number) { entry.waiting = nil }
      guard entry.holder == claim(number) else { return false }
      entry.state = state
      Self.leave(&entry, key, at: time, mourns: mourns, &effects)
    case .seize(let number):
      guard entry.waiting?.claim == claim(number), let holder = entry.holder else { return false }
      // The holder has lost its session, whatever it still writes.
      effects.append(.lost(key, holder, isClean: entry.waiting?.isClean ?? false))
      Self.leave(&entry, key, at: nil, mourns: true, &effects)
    case .willDone(let claim): entry.due.removeAll { $0.claim == claim }
    case .expired(let time):
      guard entry.holder == nil, entry.waiting == nil, entry.leftAt == time else { return false }
      entry.state = MQTTRosterState()
    case .hello, .gone, .snapshot, .snapshotEnd: break
    }
    return true
  }

  /// The holder has left: the session goes to the waiting connection, or stays without one.
  private static func leave(
    _ entry: inout Entry, _ key: MQTTHub.Key, at time: Int64?, mourns: Bool, _ effects: inout [Effect]
  ) {
    guard let holder = entry.holder.take() else { return }
    if mourns, let will = entry.state.will {
      entry.due.append(MQTTRosterWill(claim: holder, delay: entry.state.willDelay, bytes: will))
    }
    (entry.state.will, entry.state.willDelay) = (nil, 0)
    entry.leftAt = time
    // It ends with its connection.
    if entry.state.expiry == 0 { entry.state = MQTTRosterState() }
    if entry.waiting != nil { grant(&entry, key, &effects) }
  }

  private static func grant(_ entry: inout Entry, _ key: MQTTHub.Key, _ effects: inout [Effect]) {
    guard let waiting = entry.waiting.take() else { return }
    var former = entry.state
    if waiting.isClean {
      entry.state = MQTTRosterState()
      for index in entry.due.indices where entry.due[index].delay > 0 {
        entry.due[index].delay = 0
        effects.append(.willNow(key, entry.due[index].claim))
      }
    } else {
      for will in entry.due where will.delay > 0 {
        (former.will, former.willDelay) = (will.bytes, will.delay)
        effects.append(.willDropped(key, will.claim))
      }
      entry.due.removeAll { $0.delay > 0 }
    }
    entry.holder = waiting.claim
    effects.append(
      .granted(
        key, waiting.claim, entry.state, leftAt: entry.leftAt, former: former == entry.state ? nil : former))
    entry.leftAt = nil
  }

  private mutating func set(_ entry: Entry, _ key: MQTTHub.Key) {
    let (former, wasAway) = (cost(of: key), entries.isAway(key))
    entries[key] = entry.isEmpty ? nil : entry
    tally.replace(former, by: cost(of: key))
    awayCount += (entries.isAway(key) ? 1 : 0) - (wasAway ? 1 : 0)
    if entry.due.isEmpty { bereaved.remove(key) } else { bereaved.insert(key) }
  }

  // MARK: Snapshots

  mutating func restore(_ entry: Entry, _ key: MQTTHub.Key) { set(entry, key) }

  mutating func restore(_ process: Process, _ number: UInt64) { processes[number] = process }

  // MARK: Processes

  private mutating func begin(
    _ process: UInt64, _ node: String, _ serial: UInt64, at time: Int64, _ effects: inout [Effect]
  ) {
    processes[process] = Process(node: node, serial: serial)
    let former = processes.filter { $0.key != process && $0.value.node == node }.keys.sorted()
    for former in former { _ = end(former, at: time, &effects) }
    effects.append(.willsChanged)
  }

  private mutating func end(_ process: UInt64, at time: Int64, _ effects: inout [Effect]) -> Bool {
    guard processes.removeValue(forKey: process) != nil else { return false }
    for key in entries.keys(of: process) {
      guard var entry = entries[key] else { continue }
      if entry.waiting?.claim.process == process { entry.waiting = nil }
      if entry.holder?.process == process {
        Self.leave(&entry, key, at: time, mourns: true, &effects)
      }
      set(entry, key)
    }
    effects.append(.gone(process: process))
    effects.append(.willsChanged)
    return true
  }

  /// The process that is responsible for a session; nil if there are no candidates.
  ///
  /// - Parameter candidates: the live processes.
  static func responsible(for key: MQTTHub.Key, among candidates: [UInt64]) -> UInt64? {
    guard !candidates.isEmpty else { return nil }
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in key.encoded { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return candidates[Int(hash % UInt64(candidates.count))]
  }
}
