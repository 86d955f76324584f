import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// The sessions of all clients of MQTT: which connection of this process has one. What is kept of them is in ``MQTTSessions``. From any thread.
final class MQTTHub: Sendable {
  struct Entries {
    var connections: [Key: MQTTHandle] = [:] {
      didSet { mostConnections = max(mostConnections, connections.count) }
    }
    /// The most that there have been at the same time.
    private(set) var mostConnections = 0
    /// Connections that have ended and will publish their wills later.
    var mourners: [Key: MQTTConnection] = [:]
  }

  let entries = Mutex(Entries())
  let limits: MQTTLimits
  let note: @Sendable (DoorEvent) -> Void
  let broker: DoorBroker
  let system = MQTTSystemTopics()
  /// Of wills whose delay isn't over.
  private let waitingWillBytes = Atomic(0)
  /// The longest record that the broker takes, in bytes.
  let longestRecord = Atomic(1 << 20)
  /// Clients that were refused and whose CONNECT is awaited, on all loops.
  private let refusals = Atomic(0)
  /// Clients of which the operator knows that they publish to topics that the broker can't name.
  private let unnamed = Mutex<Set<Key>>([])
  private static let mostUnnamed = 10_000
  private let keepers = Mutex(Keepers())

  /// - Parameters:
  ///   - broker: what sessions have of the broker.
  ///   - limits: on sessions.
  ///   - note: called with what the operator should know, on any thread.
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

  /// Counts such a client, or with -1 one that is gone, and returns how many there are.
  @discardableResult
  func countRefusal(_ change: Int) -> Int { refusals.add(change, ordering: .relaxed).newValue }

  /// Counts a will that waits, unless there is no room for it.
  func holdWill(_ will: MQTTConnect.Will, of key: Key) -> Bool {
    let bytes = waitingWillBytes.add(will.heldBytes, ordering: .relaxed).newValue
    if bytes <= limits.willBytes { return true }
    releaseWill(will)
    note(.mqttWillPublishedEarly(client: key.clientID, identity: key.identity))
    return false
  }

  /// A will doesn't wait any more.
  func releaseWill(_ will: MQTTConnect.Will) {
    waitingWillBytes.subtract(will.heldBytes, ordering: .relaxed)
  }

  /// Whether there is room for a session beside the others, or for more in one; reports a refusal to the operator.
  func hasRoom(for key: Key, growing: Bool = false) -> Bool {
    let hasRoom = sessions?.hasRoom(growing: growing) ?? true
    if !hasRoom { note(.mqttSessionRefused(client: key.clientID, identity: key.identity)) }
    return hasRoom
  }

  /// Whether a session fits into a record, with its key: one that doesn't would keep those of all others from the log.
  func canKeep(_ session: MQTTKeptSession) -> Bool {
    guard isDurable else { return true }
    let longest = longestRecord.load(ordering: .relaxed)
    return session.fits(in: longest - min(longest / 8, 8 << 10))
  }

  /// Tells the operator that a client's subscriptions were refused.
  func note(_ refused: MQTTRefusedFilters, of key: Key?) {
    guard let key else { return }
    note(
      .mqttSubscriptionsRefused(
        client: key.clientID, identity: key.identity, filter: refused.filter, count: refused.count,
        code: refused.reason.rawValue, reason: refused.message))
  }

  /// Tells the operator that a client doesn't get the messages of a subscription that it has.
  func noteWaiting(_ filter: String, _ reason: String, of key: Key?) {
    guard let key else { return }
    note(
      .mqttSubscriptionWaits(client: key.clientID, identity: key.identity, filter: filter, reason: reason))
  }

  /// Tells the operator that a message of a client has a topic that the broker can't name.
  func noteUnnamed(_ topic: String, _ reason: String, of key: Key?) {
    system.dropped.add(1, ordering: .relaxed)
    guard let key else { return }
    let isFirst = unnamed.withLock { clients in
      // Of more clients than that, some are told of again.
      if clients.count >= Self.mostUnnamed { clients = [] }
      return clients.insert(key).inserted
    }
    note(
      .mqttTopicUnnamed(
        client: key.clientID, identity: key.identity, topic: ShownText.line(topic, limit: 255),
        reason: reason, isFirst: isFirst))
  }

  /// What keeps sessions and retained messages.
  private struct Keepers {
    var sessions: MQTTSessions?
    var replica: MQTTRetainedReplica?
  }

  /// Keeps sessions from now on: in the broker's log, with the other nodes of a cluster, or in memory.
  ///
  /// - Parameters:
  ///   - cluster: nil for a broker of one node.
  ///   - isStored: whether the broker has a store.
  ///   - loop: where the log is written and read.
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
      // The wills of the process before may be retained, too.
      MQTTFormerRetained.takeOver(on: loop, accept: accept) { sessions.open() }
    }
  }

  /// Nil before ``open(_:isStored:on:accept:)``.
  var sessions: MQTTSessions? { keepers.withLock(\.sessions) }

  /// The retained messages of a cluster; nil on one node, where they are the broker's own.
  var replica: MQTTRetainedReplica? { keepers.withLock(\.replica) }

  /// Whether sessions and retained messages outlive the process.
  var isDurable: Bool { sessions?.isDurable ?? false }

  /// The settings of the topic of retained messages.
  var retainedSettings: TopicSettings {
    replica == nil ? MQTTConnection.retainedSettings(isDurable: isDurable) : .untilTrimmed
  }

  /// Gives a session to a new connection, wherever the connection is that has it: that one ends first, and writes what it leaves.
  ///
  /// - Parameters:
  ///   - isClean: whether the client begins a new session, which ends a former one.
  ///   - isKept: whether something of the session outlives the connection or the process.
  ///   - completion: called on the loop of `connection` with what is kept.
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
          connection.hold?.claim = claim
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

  /// Keeps a connection's session, or nothing more of it. On its loop.
  ///
  /// - Parameter completion: called with whether it is kept, on any loop; not called if the session isn't the connection's any more.
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
  ///   - kept: what is left of its session; nil where nothing is.
  ///   - mourns: whether the connection will publish its will later, and has to know when the client is back before.
  ///   - isStopping: whether the broker stops: then the next process ends the session's connection at its start, and publishes its will.
  func leave(
    _ key: Key, _ connection: MQTTConnection, kept: MQTTKeptSession?, mourns: Bool, isStopping: Bool
  ) {
    // Before the next connection can have the session.
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

  /// A connection has ended before its client was told that it has its session, or without the session.
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
  /// Nil until the session is the connection's.
  var claim: MQTTClaim?

  init(number: UInt64) {
    self.number = number
  }
}
