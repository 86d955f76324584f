import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// What is kept of the sessions of all clients: in memory, as bytes, and in the broker's log where that outlives the process.
///
/// From any thread.
final class MQTTSessionStore: Sendable {
  /// The topic of the journal, whose keys are sessions' keys and whose values are ``MQTTKeptSession``.
  static let topic = "mqtt.sessions"

  private struct Entry {
    /// ``MQTTPackedSession`` for a client that is away, otherwise ``MQTTKeptSession/encoded``.
    var bytes: [UInt8]
    var isPacked: Bool
    /// When it ends, in milliseconds since 1970; nil for never, and while the client is connected.
    var expires: Int64?
    /// Where its last record that has come back is in the log; nil before.
    var offset: UInt64?

    /// What it counts, in bytes, beside the topics that it shares with others.
    func cost(of key: MQTTHub.Key) -> Int { MQTTSessionTally.cost(of: bytes.count, key) }
  }

  private struct State {
    private(set) var entries: [MQTTHub.Key: Entry] = [:]
    /// The topics of packed entries.
    private var topics = MQTTSharedTopics()
    /// But for those topics.
    private var entryTally = MQTTSessionTally()
    /// Sessions whose clients are away, and how many have expired.
    private(set) var awayCount = 0
    var expiredCount = 0
    var tally: MQTTSessionTally {
      var tally = entryTally
      tally.add(shared: topics.bytes)
      return tally
    }
    var journal: MQTTJournal?
    /// Whether the log's sessions have been read; at once without a log.
    var isLoaded = true
    var waiting: [@Sendable () -> Void] = []
    /// When sessions that have expired are looked for, in milliseconds since 1970.
    var nextSweep: Int64 = 0

    /// Puts a session in the place of the one that there is.
    ///
    /// - Parameter encoded: ``MQTTKeptSession/encoded``, which the caller mostly has.
    mutating func set(
      _ session: MQTTKeptSession, _ encoded: @autoclosure () -> [UInt8], of key: MQTTHub.Key, offset: UInt64?
    ) {
      replace(entry(session, encoded(), offset: offset), of: key)
    }

    /// The same, if there is room for it; otherwise there is none then. Returns whether there is.
    mutating func set(
      _ session: MQTTKeptSession, _ encoded: @autoclosure () -> [UInt8], of key: MQTTHub.Key,
      within limits: MQTTLimits
    ) -> Bool {
      let (former, before) = (entries[key], tally)
      let entry = entry(session, encoded(), offset: former?.offset)
      let isKept = limits.haveRoom(
        for: entry.cost(of: key) + tally.bytes - before.bytes, former?.cost(of: key), beside: before)
      if !isKept { release(entry) }
      replace(isKept ? entry : nil, of: key)
      return isKept
    }

    mutating func remove(_ key: MQTTHub.Key) { replace(nil, of: key) }

    private mutating func replace(_ entry: Entry?, of key: MQTTHub.Key) {
      let former = entries[key]
      entries[key] = entry
      awayCount += (entry?.isPacked == true ? 1 : 0) - (former?.isPacked == true ? 1 : 0)
      entryTally.replace(former?.cost(of: key), by: entry?.cost(of: key))
      if let former { release(former) }
    }

    private mutating func entry(
      _ session: MQTTKeptSession, _ encoded: @autoclosure () -> [UInt8], offset: UInt64?
    ) -> Entry {
      let isAway = session.leftAt != nil
      let bytes = isAway ? MQTTPackedSession(session, &topics).bytes : encoded()
      return Entry(bytes: bytes, isPacked: isAway, expires: session.expires, offset: offset)
    }

    private mutating func release(_ entry: Entry) {
      if entry.isPacked { MQTTPackedSession(packed: entry.bytes).release(from: &topics) }
    }

    /// Nil for bytes that can't be read.
    func session(_ entry: Entry) -> MQTTKeptSession? {
      entry.isPacked
        ? MQTTPackedSession(packed: entry.bytes).session(topics) : try? MQTTKeptSession(decoding: entry.bytes)
    }

    /// As a record has it; nil for bytes that can't be read.
    func encoded(_ entry: Entry) -> [UInt8]? { entry.isPacked ? session(entry)?.encoded : entry.bytes }

    /// Whether this process has written the session before it has read what earlier ones have.
    func hasOwn(_ key: MQTTHub.Key) -> Bool { entries[key].map { $0.offset == nil } ?? false }

    mutating func noteOffset(_ offset: UInt64, of key: MQTTHub.Key) { entries[key]?.offset = offset }
  }

  private static let sweepInterval: Int64 = 10_000
  private let state = Mutex(State())
  private let limits: MQTTLimits
  private let note: @Sendable (DoorEvent) -> Void

  /// - Parameter note: called with what the operator should know, on any thread.
  init(_ limits: MQTTLimits = MQTTLimits(), note: @escaping @Sendable (DoorEvent) -> Void = { _ in }) {
    self.limits = limits
    self.note = note
  }

  /// Keeps sessions in the broker's log from now on. What is there is read first.
  ///
  /// - Parameters:
  ///   - loop: where the log is written and read.
  ///   - accept: has the broker serve a connection, on `loop`.
  /// - Returns: begins to read, on `loop`; clients wait until it has been called.
  func open(
    on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void
  ) -> @Sendable () -> Void {
    let journal = MQTTJournal(
      Self.topic, of: self, identity: "mqtt-sessions", name: "sessions of MQTT", on: loop, accept: accept)
    state.withLock { state in
      state.journal = journal
      state.isLoaded = false
    }
    return { journal.open() }
  }

  /// Whether sessions outlive the process.
  var isDurable: Bool { state.withLock { $0.journal != nil } }

  /// Calls `body` when the sessions of earlier processes are known: at once, or on the journal's loop.
  func whenLoaded(_ body: @escaping @Sendable () -> Void) {
    let isLoaded = state.withLock { state in
      if !state.isLoaded { state.waiting.append(body) }
      return state.isLoaded
    }
    if isLoaded { body() }
  }

  /// What is kept of a session; nil where nothing is, or no longer.
  func session(_ key: MQTTHub.Key, at time: Int64) -> MQTTKeptSession? {
    state.withLock { state in
      guard let entry = state.entries[key], entry.expires.map({ time < $0 }) ?? true else { return nil }
      return state.session(entry)
    }
  }

  /// Whether there is room for a session beside the others, or for more in one.
  func hasRoom(for key: MQTTHub.Key, growing: Bool, at time: Int64) -> Bool {
    func hasRoom() -> Bool {
      state.withLock { state in
        if !growing, state.entries[key] != nil { return true }
        return limits.haveRoom(growing: growing, beside: state.tally)
      }
    }
    if hasRoom() { return true }
    sweep(at: time)
    return hasRoom()
  }

  /// Keeps a session, or nothing more of it. One for which there is no room is gone, in the log as well.
  ///
  /// - Parameter completion: called once it is as durable as it gets, on whatever loop, with whether it is kept; not called where the broker ends before.
  func put(
    _ session: MQTTKeptSession?, of key: MQTTHub.Key, at time: Int64,
    _ completion: @escaping @Sendable (Bool) -> Void = { _ in }
  ) {
    var bytes = session?.encoded ?? []
    let (journal, isKept) = state.withLock { state -> (MQTTJournal?, Bool) in
      let isKnown = state.entries[key] != nil
      var isKept = true
      if let session {
        isKept = state.set(session, bytes, of: key, within: limits)
      } else {
        state.remove(key)
      }
      // Nothing is known of it, so nothing is in the log.
      if !isKnown, session == nil || !isKept, state.isLoaded { return (nil, isKept) }
      return (state.journal, isKept)
    }
    if !isKept {
      bytes = []
      note(.mqttSessionEnded(client: key.clientID, identity: key.identity))
    }
    guard let journal else { return completion(isKept) }
    journal.loop.execute { [bytes] in journal.append(key.encoded, bytes) { completion(isKept) } }
  }

  /// Ends sessions whose time is over.
  func sweep(at time: Int64) {
    let (gone, journal) = state.withLock { state -> ([MQTTHub.Key], MQTTJournal?) in
      guard time >= state.nextSweep else { return ([], nil) }
      state.nextSweep = time + Self.sweepInterval
      let gone = state.entries.filter { $0.value.expires.map { time >= $0 } ?? false }.map(\.key)
      for key in gone { state.remove(key) }
      state.expiredCount += gone.count
      return (gone, state.journal)
    }
    guard let journal, !gone.isEmpty else { return }
    journal.loop.execute { for key in gone { journal.append(key.encoded, []) {} } }
  }

  /// How many sessions have clients that are away, and how many have expired.
  var absences: (away: Int, expired: Int) { state.withLock { ($0.awayCount, $0.expiredCount) } }

  /// How many sessions are kept, and what they count in bytes.
  var size: (count: Int, bytes: Int) {
    state.withLock { ($0.tally.count, $0.tally.bytes) }
  }
}

// What the journal says.
extension MQTTSessionStore: MQTTJournalKeeper {
  func found(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64) {
    guard let key = unsafe MQTTHub.Key(decoding: key) else { return }
    let bytes = unsafe Array(value)
    state.withLock { state in
      // This process has what it has written anyway, and knows better than an earlier one.
      if isOwn {
        state.noteOffset(offset, of: key)
      } else if state.isLoaded || state.hasOwn(key) {
        return
      } else if let session = try? MQTTKeptSession(decoding: bytes) {
        state.set(session, bytes, of: key, offset: offset)
      } else {
        state.remove(key)
      }
    }
  }

  /// Sessions whose clients were connected when the process ended count from now on, and their wills are published.
  func loaded(_ journal: MQTTJournal) {
    let loop = journal.loop
    for bereaved in loaded(at: loop.wallClock) {
      journal.append(bereaved.key.encoded, bereaved.session.encoded) {}
      guard let will = bereaved.will, let accept = journal.accept else { continue }
      // A client that comes back before has its session, but the will of the connection that is gone.
      _ = loop.schedule(after: .seconds(Int64(min(will.delay, bereaved.session.expiry)))) { [loop] in
        MQTTWillSender.publish(will, of: bereaved.key, on: loop, accept: accept)
      }
    }
  }

  private func loaded(
    at time: Int64
  ) -> [(key: MQTTHub.Key, session: MQTTKeptSession, will: MQTTConnect.Will?)] {
    let (waiting, bereaved) = state.withLock { state in
      state.isLoaded = true
      var bereaved: [(key: MQTTHub.Key, session: MQTTKeptSession, will: MQTTConnect.Will?)] = []
      for (key, entry) in state.entries {
        guard !entry.isPacked, var session = state.session(entry) else { continue }
        session.leftAt = time
        let will = session.will.take()
        bereaved.append((key, session, will))
        state.set(session, session.encoded, of: key, offset: entry.offset)
      }
      defer { state.waiting = [] }
      return (state.waiting, bereaved)
    }
    for body in waiting { body() }
    return bereaved
  }

  var extent: (count: Int, first: UInt64?) {
    state.withLock { state in (state.entries.count, state.entries.values.lazy.compactMap(\.offset).min()) }
  }

  func rewrite(before offset: UInt64, by journal: MQTTJournal) {
    let old = state.withLock { state -> [(key: MQTTHub.Key, bytes: [UInt8])] in
      state.entries.compactMap { key, entry in
        guard let last = entry.offset, last < offset, let bytes = state.encoded(entry) else { return nil }
        return (key: key, bytes: bytes)
      }
    }
    for session in old { journal.append(session.key.encoded, session.bytes) {} }
  }

  /// The values are in memory: nothing is read again.
  func foundAgain(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64,
    by journal: MQTTJournal
  ) {}
}

extension MQTTHub.Key {
  /// As the key of a record.
  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.string(identity)
    writer.string(clientID)
    return writer.bytes
  }

  /// Nil for what isn't one.
  init?(decoding bytes: UnsafeRawBufferPointer) {
    var reader = unsafe ByteReader(bytes)
    guard let identity = try? reader.string("identity"),
      let clientID = try? reader.string("client identifier")
    else { return nil }
    self.init(identity: identity, clientID: clientID)
  }
}
