import SluiceAccess
import SluiceIO
import SluiceTopics
import SluiceWire
import Synchronization

/// An administrative request of a user that isn't a client of the protocol, such as a visitor of the admin listener.
public enum AdministrationRequest: Hashable, Sendable {
  case createTopic(TopicCreate)
  case setTopic(TopicSet)
  case trimTopic(TopicTrim)
  case deleteTopic(String)
  case publish(RecordPublication)
  /// Moves a durable cursor, or a group, to another position of its topic.
  case moveCursor(CursorMove)
  case deleteCursor(CursorDelete)
  case closeConnection(UInt64)
}

/// One record for a topic that exists.
public struct RecordPublication: Hashable, Sendable {
  public var topic: String
  /// Nil for a record without one.
  public var key: [UInt8]?
  public var headers: [RecordSnapshot.Header]
  public var payload: [UInt8]

  public init(
    topic: String, key: [UInt8]? = nil, headers: [RecordSnapshot.Header] = [], payload: [UInt8] = []
  ) {
    self.topic = topic
    self.key = key
    self.headers = headers
    self.payload = payload
  }
}

extension RecordPublication {
  fileprivate func batch() throws(WireError) -> BatchBuilder {
    var batch = BatchBuilder()
    let headers = headers.map { ($0.name, $0.value) }
    try unsafe payload.withUnsafeBytes { payload in
      unsafe (key ?? []).withUnsafeBytes { key in
        Result { () throws(WireError) in
          try unsafe batch.append(key: self.key == nil ? nil : key, headers: headers, payload: payload)
        }
      }
    }.get()
    return batch
  }
}

extension Broker {
  /// Runs an administrative request as if a client had sent it: with the same permissions, limits, metrics and audit lines. From any thread; returns
  /// at once.
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - identity: the authenticated identity, whose permissions count.
  ///   - peer: the address that the request comes from, for the audit.
  ///   - name: the client name in the audit.
  ///   - completion: called once, on any thread, when the change is on disk or was rejected; not called when the broker stops before.
  public func administer(
    _ request: AdministrationRequest, as identity: Identity, from peer: SocketAddress, named name: String,
    completion: @escaping @Sendable (Result<Void, WireError>) -> Void
  ) {
    // The timer that fails topics with lost producers runs on this loop, which lives as long as the broker.
    let context = contexts[0]
    context.loop.execute { [self] in
      let client = ConnectedClient(visitor: identity, from: peer, named: name, core: core)
      let administration = TopicAdministration(by: client, on: context.topics)
      do throws(WireError) {
        let topic: Topic
        var cursor: String?
        switch request {
        case .createTopic(let frame): topic = try administration.create(frame)
        case .setTopic(let frame): topic = try administration.set(frame)
        case .trimTopic(let frame): topic = try administration.trim(frame)
        case .deleteTopic(let name): topic = try administration.delete(name)
        case .publish(let publication):
          topic = try administration.publish(to: publication.topic) { () throws(WireError) in
            try publication.batch()
          }
        case .moveCursor(let frame):
          if let (time, storage) = try administration.unknownStart(of: frame) {
            return storage.service.find(time, in: storage) { [self] offset in
              let move = CursorMove(topic: frame.topic, name: frame.name, to: .offset(offset))
              administer(.moveCursor(move), as: identity, from: peer, named: name, completion: completion)
            }
          }
          topic = try administration.move(frame)
          cursor = frame.name
        case .deleteCursor(let frame):
          topic = try administration.delete(frame)
          cursor = frame.name
        case .closeConnection(let connection):
          return try close(connection, administration, completion)
        }
        topic.whenCommitted(of: cursor) { fault in
          completion(fault.map { .failure(WireError($0)) } ?? .success(()))
        }
      } catch {
        completion(.failure(error))
      }
    }
  }

  private func close(
    _ connection: UInt64, _ administration: TopicAdministration,
    _ completion: @escaping @Sendable (Result<Void, WireError>) -> Void
  ) throws(WireError) {
    try administration.client.requireBroker()
    let (loop, client, topics) = (administration.topics.loop, administration.client, administration.topics)
    serve(
      .close(connection, .connectionClosedByOperator) { [core] isClosed in
        if isClosed { core.metrics.add(.closedByOperators) }
        let refusal = isClosed ? nil : WireError.unknownConnection(connection)
        loop.execute {
          TopicAdministration(by: client, on: topics).report(
            .closeConnection(connection), of: "", refusal: refusal)
          completion(refusal.map { .failure($0) } ?? .success(()))
        }
      })
  }
}

extension Broker {
  /// Lets clients see and change a cluster until the broker stops. From any thread.
  public func administer(_ cluster: any ClusterAdministration) {
    core.cluster.withLock { $0 = cluster }
  }
}
