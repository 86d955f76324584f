import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// Maps the sessions of all MQTT clients to the connections of this process. ``MQTTSessions`` stores the sessions. Usable from any thread.
final class MQTTHub: Sendable {
  struct Entries {
    var connections: [Key: MQTTHandle] = [:] {
      didSet { mostConnections = max(mostConnections, connections.count) }
    }
    /// The peak number of connections.
    private(set) var mostConnections = 0
    /// Connections that have ended and will publish their wills later.
    var mourners: [Key: MQTTConnection] = [:]
  }

  let entries = Mutex(Entries())
  let limits: MQTTLimits
  let note: @Sendable (DoorEvent) -> Void
  let broker: DoorBroker
  let system = MQTTSystemTopics()
  /// Bytes of wills whose delay hasn't passed.
  private let waitingWillBytes = Atomic(0)
  /// The longest record that the broker accepts, in bytes.
  let longestRecord = Atomic(1 << 20)
  /// Refused clients whose CONNECT is awaited, on all loops.
  private let refusals = Atomic(0)
  /// Clients whose messages to topics that the broker can't name were already reported to the operator.
  private let unnamed = Mutex<Set<Key>>([])
  private static let mostUnnamed = 10_000
  private let keepers = Mutex(Keepers())

  /// - Parameters:
  ///   - broker: publishes wills and stores sessions.
  ///   - limits: on sessions.
  ///   - note: called with events for the operator, on any thread.
  init(
    _ broker: DoorBroker, _ limits: MQTTLimits = MQTTLimits(),
    note: @escaping @Sendable (DoorEvent) -> Void = { _ in }
  ) {
    self.broker = broker
    self.limits = limits
    self.note = note
    system.serve(self)
  }

  var waitingRefusals: Int { refusals.load(ordering: .relaxed) }

  /// Adds refused clients, or with -1 removes one, and returns how many wait.
  @discardableResult
  func countRefusal(_ change: Int) -> Int { refusals.add(change, ordering: .relaxed).newValue }

  /// Counts a waiting will. Returns false if there is no room for it.
  func holdWill(_ will: MQTTConnect.Will, of key: Key) -> Bool {
    let bytes = waitingWillBytes.add(will.heldBytes, ordering: .relaxed).newValue
    if bytes <= limits.willBytes { return true }
    releaseWill(will)
    note(.mqttWillPublishedEarly(client: key.clientID, identity: key.identity))
    return false
  }

  /// A will no longer waits.
  func releaseWill(_ will: MQTTConnect.Will) {
    waitingWillBytes.subtract(will.heldBytes, ordering: .relaxed)
  }

  /// Returns whether there is room for a further session, or for the growth of one; reports a refusal to the operator.
  func hasRoom(for key: Key, growing: Bool = false) -> Bool {
    let hasRoom = sessions?.hasRoom(growing: growing) ?? true
    if !hasRoom { note(.mqttSessionRefused(client: key.clientID, identity: key.identity)) }
    return hasRoom
  }

  /// Returns whether a session and its key fit into a record. A longer one would block the log for all others.
  func canKeep(_ session: MQTTKeptSession) -> Bool {
    guard isDurable else { return true }
    let longest = longestRecord.load(ordering: .relaxed)
    return session.fits(in: longest - min(longest / 8, 8 << 10))
  }

  /// Reports to the operator that a client's subscriptions were refused.
  func note(_ refused: MQTTRefusedFilters, of key: Key?) {
    guard let key else { return }
    note(
      .mqttSubscriptionsRefused(
        client: key.clientID, identity: key.identity, filter: refused.filter, count: refused.count,
        code: refused.reason.rawValue, reason: refused.message))
  }

  /// Reports to the operator that a subscription of a client currently gets no messages.
  func noteWaiting(_ filter: String, _ reason: String, of key: Key?) {
    guard let key else { return }
    note(
      .mqttSubscriptionWaits(client: key.clientID, identity: key.identity, filter: filter, reason: reason))
  }

  /// Reports to the operator that a message of a client has a topic that the broker can't name.
  func noteUnnamed(_ topic: String, _ reason: String, of key: Key?) {
    system.dropped.add(1, ordering: .relaxed)
    guard let key else { return }
    let isFirst = unnamed.withLock { clients in
      // Beyond this number, some clients are reported again.
      if clients.count >= Self.mostUnnamed { clients = [] }
      return clients.insert(key).inserted
    }
    note(
      .mqttTopicUnnamed(
        client: key.clientID, identity: key.identity, topic: ShownText.line(topic, limit: 255),
        reason: reason, isFirst: isFirst))
  }

  /// The objects that store sessions and retained messages.
  private struct Keepers {
    var sessions: MQTTSessions?
    var replica: MQTTRetainedReplica?
  }

  /// Begins to store sessions: in the broker's log, which a cluster's nodes share, or in memory.
  ///
  /// - Parameters:
  ///   - cluster: nil for a broker of one node.
  ///   - isStored: whether the broker has a store.
  ///   - loop: writes and reads the log.
  ///   - accept: passes a connection to the broker, on `loop`.
  func open(
    _ cluster: DoorCluster?, isStored: Bool, on loop: any EventLoop,
    accept: @escaping @Sendable (any ByteStream) -> Void
  ) {
    let sessions = MQTTSessions(cluster, self, isStored: isStored, on: loop, accept: accept)
    var replica: MQTTRetainedReplica?
    if cluster != nil {
      replica = MQTTRetainedReplica(on: loop, accept: accept) { [weak sessions] in
        sessions?.isFirst ?? false
      }
    }
    keepers.withLock { [replica] in $0 = Keepers(sessions: sessions, replica: replica) }
    loop.execute { [replica] in
      guard isStored, cluster == nil else {
        sessions.open()
        replica?.open()
        return
      }
      // The wills of the previous process may be retained messages, too.
      MQTTFormerRetained.takeOver(on: loop, accept: accept) { sessions.open() }
    }
  }

  /// Nil before ``open(_:isStored:on:accept:)``.
  var sessions: MQTTSessions? { keepers.withLock(\.sessions) }

  /// The retained messages of a cluster; nil on a single node, which uses the broker's own.
  var replica: MQTTRetainedReplica? { keepers.withLock(\.replica) }

  /// Whether sessions and retained messages outlive the process.
  var isDurable: Bool { sessions?.isDurable ?? false }

  /// The settings of the topic of retained messages.
  var retainedSettings: TopicSettings {
    replica == nil ? MQTTConnection.retainedSettings(isDurable: isDurable) : .untilTrimmed
  }

  /// Gives a session to a new connection. If another connection has it, on any node, that one first ends and stores its state.
  ///
  /// - Parameters:
  ///   - isClean: whether the client begins a new session, which ends a former one.
  ///   - isKept: whether some state of the session outlives the connection or the process.
  ///   - completion: called on the loop of `connection` with the stored state.
  func attach(
    _ key: Key, to connection: MQTTConnection, isClean: Bool, isKept: Bool,
    _ completion: @escaping @Sendable (MQTTKeptSession?) -> Void
  ) {
    let (handle, loop) = (connection.handle, connection.loop)
    let former = entries.withLock { $0.connections.updateValue(handle, forKey: key) }
    guard let sessions else { return completion(nil) }
    let number = sessions.newNumber()
    connection.hold = MQTTHold(number: number)
    let claim = { @Sendable in
      sessions.claim(number, key, by: handle, isClean: isClean, isKept: isKept) { claim, kept in
        loop.execute {
          connection.hold?.take(claim)
          if claim == nil { connection.hold = nil }
          completion(isClean ? nil : kept)
        }
      }
    }
    guard let former else { return claim() }
    former.loop.execute {
      former.connection?.surrender(isClean: isClean)
      claim()
    }
  }

  /// Stores a connection's session, or deletes its state. On the connection's loop.
  ///
  /// - Parameter completion: called with whether it is stored, on any loop; not called if the session no longer belongs to the connection.
  func put(
    _ session: MQTTKeptSession?, of connection: MQTTConnection,
    _ completion: @escaping @Sendable (Bool) -> Void = { _ in }
  ) {
    guard let key = connection.key, let hold = connection.hold else { return }
    sessions?.put(session, of: key, hold.number, completion)
  }

  /// A connection has ended.
  ///
  /// - Parameters:
  ///   - kept: the remaining state of its session; nil for none.
  ///   - mourns: whether the connection will publish its will later, and must be notified if the client reconnects before.
  ///   - isStopping: whether the broker is stopping: then the next process ends the session's connection at its start, and publishes its will.
  func leave(
    _ key: Key, _ connection: MQTTConnection, kept: MQTTKeptSession?, mourns: Bool, isStopping: Bool
  ) {
    // Must precede the next connection's access to the session.
    if isStopping {
      put(kept, of: connection)
    } else if let hold = connection.hold {
      sessions?.release(kept, of: key, hold.number, at: connection.loop.wallClock)
    }
    entries.withLock { entries in
      if entries.connections[key] === connection.handle { entries.connections[key] = nil }
      if mourns {
        entries.mourners[key] = connection
      } else if entries.mourners[key] === connection {
        entries.mourners[key] = nil
      }
    }
  }

  /// A connection without a session has ended, or one whose client got no CONNACK.
  func detach(_ key: Key, _ connection: MQTTConnection) {
    if let hold = connection.hold {
      sessions?.giveUp(key, hold.number, at: connection.loop.wallClock)
    }
    entries.withLock { entries in
      if entries.connections[key] === connection.handle { entries.connections[key] = nil }
    }
  }

  /// The connection's will was published or dropped.
  func mourned(_ key: Key, _ connection: MQTTConnection) {
    entries.withLock { entries in
      if entries.mourners[key] === connection { entries.mourners[key] = nil }
    }
  }
}

/// A connection's claim to its session.
final class MQTTHold {
  let number: UInt64
  /// Nil until the connection has the session.
  private(set) var claim: MQTTClaim?

  init(number: UInt64) {
    self.number = number
  }

  /// The session belongs to the connection; or, with nil, there is no claim for it.
  func take(_ claim: MQTTClaim?) { self.claim = claim }
}
