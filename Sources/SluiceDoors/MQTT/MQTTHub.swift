import SluiceIO
import SluiceMQTT
import Synchronization

/// Where a subscription of a session goes on: behind what the client has settled in each topic.
struct MQTTPositions: Sendable {
  /// The next offset, by the session's number of the topic.
  var offsets: [UInt32: UInt64] = [:]
}

/// A topic as a session's places name it.
struct MQTTKnownTopic: Hashable, Sendable {
  /// The broker's name.
  var name: String
  var epoch: UInt64
}

/// What is kept of a session whose client is away: no messages. What the client is owed is in the topics' logs.
struct MQTTKeptSession: Sendable {
  var state: [UInt8]
  /// The session's number as a producer, which makes its messages at QoS 2 exactly one each.
  var producer: UInt64
  var topics: [UInt32: MQTTKnownTopic]
  /// By the numbers of subscriptions.
  var positions: [UInt16: MQTTPositions]
  /// Messages at QoS 2 that weren't acknowledged: by the session's sequence, the topic and the sequence there.
  var exact: [UInt64: MQTTExactPlace]
  /// Nil for ever.
  var expires: MonotonicTime?
}

struct MQTTExactPlace: Hashable, Sendable {
  var topic: String
  var sequence: UInt64
}

/// The sessions of all clients of MQTT: which connection has one, and what is kept of those whose client is away.
///
/// A session belongs to an identity and a client identifier: a client with the identifier of another identity's client has a session of its own.
/// From any thread.
final class MQTTHub: Sendable {
  struct Key: Hashable, Sendable {
    var identity: String
    var clientID: String
  }

  private struct Entry {
    var connection: MQTTConnection?
    /// A connection that has ended and will publish its will later.
    var mourner: MQTTConnection?
    var kept: MQTTKeptSession?

    var isEmpty: Bool { connection == nil && mourner == nil && kept == nil }
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    var kept = 0
    /// When sessions that have expired are looked for.
    var nextSweep = MonotonicTime(nanoseconds: 0)
  }

  /// Sessions of absent clients that are kept at most. Beyond it a session ends with its connection.
  private static let maximumKept = 1_000_000
  private static let sweepInterval = Duration.seconds(10)
  private let state = Mutex(State())

  /// Gives a session to a new connection: the connection that had it, if any, ends first.
  ///
  /// - Parameters:
  ///   - isClean: whether the client begins a new session, which ends a former one.
  ///   - completion: called on the loop of `connection` with what is kept.
  func attach(
    _ key: Key, to connection: MQTTConnection, isClean: Bool,
    _ completion: @escaping @Sendable (MQTTKeptSession?) -> Void
  ) {
    let (former, mourner) = state.withLock { state in
      var entry = state.entries[key] ?? Entry()
      let former = (entry.connection, entry.mourner)
      entry.connection = connection
      entry.mourner = nil
      state.entries[key] = entry
      return former
    }
    // The will of a session that goes on isn't published; that of one that ends is, now.
    mourner?.loop.execute { mourner?.settleWill(publishing: isClean) }
    let loop = connection.loop
    guard let former else {
      return loop.execute { [self] in completion(takeKept(key, at: loop.now)) }
    }
    former.loop.execute { [self] in
      let surrendered = former.surrender(isClean: isClean)
      loop.execute { [self] in
        let kept = takeKept(key, at: loop.now)
        completion(surrendered ?? kept)
      }
    }
  }

  /// Takes what is kept of a session.
  private func takeKept(_ key: Key, at now: MonotonicTime) -> MQTTKeptSession? {
    state.withLock { state in
      guard let kept = state.entries[key]?.kept.take() else { return nil }
      state.kept -= 1
      if let expires = kept.expires, now >= expires { return nil }
      return kept
    }
  }

  /// A connection has ended.
  ///
  /// - Parameters:
  ///   - kept: what is left of its session; nil where nothing is.
  ///   - mourns: whether the connection will publish its will later, and has to know when the client is back before.
  func leave(
    _ key: Key, _ connection: MQTTConnection, kept: MQTTKeptSession?, mourns: Bool, at now: MonotonicTime
  ) {
    state.withLock { state in
      var entry = state.entries[key] ?? Entry()
      if entry.connection === connection { entry.connection = nil }
      if let kept, state.kept < Self.maximumKept || entry.kept != nil {
        if entry.kept == nil { state.kept += 1 }
        entry.kept = kept
      }
      if mourns { entry.mourner = connection } else if entry.mourner === connection { entry.mourner = nil }
      state.entries[key] = entry.isEmpty ? nil : entry
      sweep(&state, at: now)
    }
  }

  /// The connection's will was published or dropped.
  func mourned(_ key: Key, _ connection: MQTTConnection) {
    state.withLock { state in
      guard var entry = state.entries[key], entry.mourner === connection else { return }
      entry.mourner = nil
      state.entries[key] = entry.isEmpty ? nil : entry
    }
  }

  private func sweep(_ state: inout State, at now: MonotonicTime) {
    guard now >= state.nextSweep else { return }
    state.nextSweep = now + Self.sweepInterval
    for (key, entry) in state.entries {
      guard let expires = entry.kept?.expires, now >= expires else { continue }
      var entry = entry
      entry.kept = nil
      state.kept -= 1
      state.entries[key] = entry.isEmpty ? nil : entry
    }
  }
}
