import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

/// The sessions of all clients of MQTT: which connection has one. What is kept of them is in ``MQTTSessionStore``.
///
/// A session belongs to an identity and a client identifier: a client with the identifier of another identity's client has a session of its own.
/// From any thread.
final class MQTTHub: Sendable {
  struct Key: Hashable, Sendable {
    var identity: String
    var clientID: String

    /// Client identifiers are compared by bytes: MQTT normalises nothing.
    static func == (left: Key, right: Key) -> Bool {
      left.identity == right.identity && left.clientID.utf8.elementsEqual(right.clientID.utf8)
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(identity)
      for byte in clientID.utf8 { hasher.combine(byte) }
    }
  }

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
  let store: MQTTSessionStore
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
  private let durableRetained = Mutex<MQTTRetainedStore?>(nil)
  private let nodes = Mutex(Nodes())

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
    store = MQTTSessionStore(limits, note: note)
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

  /// Whether there is room for a session beside the others, or for more in one; what is refused is told to the operator.
  func hasRoom(for key: Key, growing: Bool = false, at time: Int64) -> Bool {
    let hasRoom =
      cluster?.hasRoom(growing: growing) ?? store.hasRoom(for: key, growing: growing, at: time)
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

  /// Keeps retained messages over the end of the process; nil where nothing does.
  var retained: MQTTRetainedStore? { durableRetained.withLock(\.self) }

  /// Keeps sessions and retained messages in the broker's log from now on. What is there is read first.
  ///
  /// - Parameters:
  ///   - loop: where the log is written and read.
  ///   - accept: has the broker serve a connection, on `loop`.
  func open(on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void) {
    let retained = MQTTRetainedStore(on: loop, accept: accept)
    durableRetained.withLock { $0 = retained }
    let openSessions = store.open(on: loop, accept: accept)
    loop.execute { retained.open() }
    // The wills of the process before may be retained, too.
    retained.whenLoaded { loop.execute(openSessions) }
  }

  /// What the hub of a cluster's node has instead of stores.
  struct Nodes {
    var sessions: MQTTClusterSessions?
    var replica: MQTTRetainedReplica?
  }

  func open(_ nodes: Nodes) { self.nodes.withLock { $0 = nodes } }

  /// The sessions of a cluster; nil on one node.
  var cluster: MQTTClusterSessions? { nodes.withLock(\.sessions) }

  /// The retained messages of a cluster; nil on one node.
  var replica: MQTTRetainedReplica? { nodes.withLock(\.replica) }

  /// Gives a session to a new connection: the connection that had it, if any, ends first.
  ///
  /// - Parameters:
  ///   - isClean: whether the client begins a new session, which ends a former one.
  ///   - completion: called on the loop of `connection` with what is kept.
  func attach(
    _ key: Key, to connection: MQTTConnection, isClean: Bool,
    _ completion: @escaping @Sendable (MQTTKeptSession?) -> Void
  ) {
    if let cluster { return attach(key, to: connection, isClean: isClean, cluster, completion) }
    let (former, mourner) = entries.withLock { entries in
      (
        entries.connections.updateValue(connection.handle, forKey: key),
        entries.mourners.removeValue(forKey: key)
      )
    }
    // The will of a session that goes on isn't published; that of one that ends is, now.
    mourner?.loop.execute { mourner?.settleWill(publishing: isClean) }
    let loop = connection.loop
    let complete = { @Sendable [store] in
      loop.execute { completion(isClean ? nil : store.session(key, at: loop.wallClock)) }
    }
    guard let former else {
      guard isClean else { return store.whenLoaded(complete) }
      guard let retained else { return complete() }
      return retained.whenLoaded(complete)
    }
    former.loop.execute {
      former.connection?.surrender(isClean: isClean)
      complete()
    }
  }

  /// A connection has ended.
  ///
  /// - Parameters:
  ///   - kept: what is left of its session; nil where nothing is.
  ///   - mourns: whether the connection will publish its will later, and has to know when the client is back before.
  func leave(_ key: Key, _ connection: MQTTConnection, kept: MQTTKeptSession?, mourns: Bool) {
    entries.withLock { entries in
      if entries.connections[key] === connection.handle { entries.connections[key] = nil }
      if mourns {
        entries.mourners[key] = connection
      } else if entries.mourners[key] === connection {
        entries.mourners[key] = nil
      }
    }
    let time = connection.loop.wallClock
    if let cluster, let part = connection.part {
      return cluster.release(kept, of: key, part.number, at: time)
    }
    store.put(kept, of: key, at: time)
    store.sweep(at: time)
  }

  /// A connection has ended before its client was told that it has its session, or without the session.
  func detach(_ key: Key, _ connection: MQTTConnection) {
    if let cluster, let part = connection.part {
      cluster.giveUp(key, part.number, at: connection.loop.wallClock)
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
