import SluiceIO
import SluiceMQTT
import SluiceWire
import Synchronization

// Sessions, wills and retained messages, on one node or in a cluster.
extension MQTTHub {
  /// Keeps sessions and retained messages with the other nodes of a cluster from now on.
  ///
  /// - Parameters:
  ///   - loop: where the logs are written and read.
  ///   - accept: has the broker serve a connection, on `loop`.
  func open(_ cluster: DoorCluster, on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void) {
    let sessions = MQTTClusterSessions(cluster, self, on: loop, accept: accept)
    let replica = MQTTRetainedReplica(on: loop, accept: accept) { [weak sessions] in
      sessions?.isFirst ?? false
    }
    open(Nodes(sessions: sessions, replica: replica))
    loop.execute {
      sessions.open()
      replica.open()
    }
  }

  /// Whether sessions outlive the process.
  var isDurable: Bool { cluster != nil || store.isDurable }

  /// Whether retained messages outlive the process, so that their publishers wait for that.
  var keepsRetained: Bool { retained != nil || replica != nil }

  /// The settings of the topic of retained messages.
  var retainedSettings: TopicSettings {
    replica == nil ? MQTTConnection.retainedSettings : MQTTLog.settings
  }

  /// Keeps a connection's session, or nothing more of it. On its loop.
  ///
  /// - Parameter completion: called with whether it is kept, on whatever loop; not called where the session isn't the connection's any more.
  func put(
    _ session: MQTTKeptSession?, of connection: MQTTConnection,
    _ completion: @escaping @Sendable (Bool) -> Void = { _ in }
  ) {
    guard let key = connection.key else { return }
    if let cluster, let part = connection.part {
      cluster.put(session, of: key, part.number, completion)
    } else {
      store.put(session, of: key, at: connection.loop.wallClock, completion)
    }
  }

  /// Gives a session to a new connection, wherever the connection is that has it: that one ends first, and writes what it leaves.
  func attach(
    _ key: Key, to connection: MQTTConnection, isClean: Bool, _ cluster: MQTTClusterSessions,
    _ completion: @escaping @Sendable (MQTTKeptSession?) -> Void
  ) {
    guard let number = connection.part?.number else { return }
    let former = entries.withLock { entries in
      entries.connections.updateValue(connection.handle, forKey: key)
    }
    let loop = connection.loop
    let claim = { @Sendable in
      cluster.claim(number, key, by: connection, isClean: isClean) { claim, kept in
        loop.execute {
          connection.part?.claim = claim
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

  // MARK: Wills

  /// Publishes the will of a client whose connection the broker has closed. On the connection's loop.
  func publish(_ will: MQTTConnect.Will, of connection: MQTTConnection) {
    guard let key = connection.key else { return }
    guard let cluster, let claim = connection.part?.claim else {
      return publish(will, of: key, producer: nil, on: connection.loop) { _ in }
    }
    let loop = connection.loop
    publish(will, of: key, producer: claim.producer, on: loop) { [weak self] isOver in
      if isOver { return cluster.willDone(claim, key) }
      _ = loop.schedule(after: .seconds(1)) { self?.publish(will, of: connection) }
    }
  }

  /// On the loop.
  func publish(
    _ will: MQTTConnect.Will, of key: Key, producer: UInt64?, on loop: any EventLoop,
    _ completion: @escaping (Bool) -> Void
  ) {
    guard let accept = broker.accept else { return }
    MQTTWillSender.publish(
      will, of: key, on: loop, producer: producer, accept: { accept($0, loop) }, completion)
  }

  /// The connection's will is in the log.
  func willDone(of connection: MQTTConnection) {
    guard let key = connection.key, let claim = connection.part?.claim else { return }
    cluster?.willDone(claim, key)
  }

  /// The client of a will that waits is back at whatever node, or its session has ended.
  func settleWill(of key: Key, publishing: Bool) {
    guard let mourner = entries.withLock({ $0.mourners[key] }) else { return }
    mourner.loop.execute { mourner.settleWill(publishing: publishing) }
  }
}
