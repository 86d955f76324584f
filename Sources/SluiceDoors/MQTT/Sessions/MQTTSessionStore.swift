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
    var bytes: [UInt8]
    /// When it ends, in milliseconds since 1970; nil for never, and while the client is connected.
    var expires: Int64?
    /// Where its last record that has come back is in the log; nil before.
    var offset: UInt64?
  }

  private struct State {
    var entries: [MQTTHub.Key: Entry] = [:]
    var journal: MQTTJournal?
    /// Whether the log's sessions have been read; at once without a log.
    var isLoaded = true
    var waiting: [@Sendable () -> Void] = []
    /// When sessions that have expired are looked for, in milliseconds since 1970.
    var nextSweep: Int64 = 0
  }

  /// Sessions that are kept at most. Beyond it a session ends with its connection.
  private static let maximumCount = 1_000_000
  private static let sweepInterval: Int64 = 10_000
  private let state = Mutex(State())

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
    guard let entry = state.withLock({ $0.entries[key] }), entry.expires.map({ time < $0 }) ?? true else {
      return nil
    }
    return try? MQTTKeptSession(decoding: entry.bytes)
  }

  /// Keeps a session, or nothing more of it.
  ///
  /// - Parameter completion: called once it is as durable as it gets, on whatever loop; not called where the broker ends before.
  func put(
    _ session: MQTTKeptSession?, of key: MQTTHub.Key, at time: Int64,
    _ completion: @escaping @Sendable () -> Void = {}
  ) {
    let bytes = session?.encoded ?? []
    let journal = state.withLock { state -> MQTTJournal? in
      let former = state.entries[key]
      if let session {
        guard former != nil || state.entries.count < Self.maximumCount else { return nil }
        state.entries[key] = Entry(bytes: bytes, expires: session.expires, offset: former?.offset)
      } else {
        state.entries[key] = nil
        // Nothing is known of it, so nothing is in the log.
        if former == nil, state.isLoaded { return nil }
      }
      return state.journal
    }
    guard let journal else { return completion() }
    journal.loop.execute { journal.append(key.encoded, bytes, completion) }
  }

  /// Ends sessions whose time is over.
  func sweep(at time: Int64) {
    let (gone, journal) = state.withLock { state -> ([MQTTHub.Key], MQTTJournal?) in
      guard time >= state.nextSweep else { return ([], nil) }
      state.nextSweep = time + Self.sweepInterval
      let gone = state.entries.filter { $0.value.expires.map { time >= $0 } ?? false }.map(\.key)
      for key in gone { state.entries[key] = nil }
      return (gone, state.journal)
    }
    guard let journal, !gone.isEmpty else { return }
    journal.loop.execute { for key in gone { journal.append(key.encoded, []) {} } }
  }

  /// How many sessions are kept, and their bytes.
  var size: (count: Int, bytes: Int) {
    state.withLock { state in
      (state.entries.count, state.entries.values.reduce(0) { $0 + $1.bytes.count })
    }
  }
}

// What the journal says.
extension MQTTSessionStore: MQTTJournalKeeper {
  func found(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64) {
    guard let key = unsafe MQTTHub.Key(decoding: key) else { return }
    let bytes = unsafe Array(value)
    state.withLock { state in
      // This process has what it has written anyway.
      if isOwn {
        state.entries[key]?.offset = offset
      } else if let session = try? MQTTKeptSession(decoding: bytes) {
        state.entries[key] = Entry(bytes: bytes, expires: session.expires, offset: offset)
      } else {
        state.entries[key] = nil
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
        MQTTWillSender.publish(will, of: bereaved.key.identity, on: loop, accept: accept)
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
        guard var session = try? MQTTKeptSession(decoding: entry.bytes), session.leftAt == nil else {
          continue
        }
        session.leftAt = time
        let will = session.will.take()
        bereaved.append((key, session, will))
        state.entries[key]?.bytes = session.encoded
        state.entries[key]?.expires = session.expires
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
    let old = state.withLock { state in
      state.entries.compactMap { key, entry in
        entry.offset.map { $0 < offset } ?? false ? (key: key, bytes: entry.bytes) : nil
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
