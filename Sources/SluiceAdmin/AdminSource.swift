import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire

/// What the admin listener shows: a broker, or what a test has made up. From any thread.
public protocol AdminSource: Sendable {
  var stage: AdminStage { get }

  /// Whether clients are asked who they are. Then visitors of the admin listener are, too.
  var asksClients: Bool { get }

  /// The broker as it is now.
  ///
  /// - Parameter completion: called once, on any thread; not at all when the broker stops before.
  func snapshot(_ request: AdminSnapshotRequest, completion: @escaping @Sendable (BrokerSnapshot) -> Void)

  /// The newest records of a topic, the oldest of them first; nil when there is no such topic.
  ///
  /// - Parameters:
  ///   - count: the most records.
  ///   - bytes: the most bytes that they may have together, so that nothing huge is copied.
  ///   - completion: as of ``snapshot(_:completion:)``.
  func lastRecords(
    of topic: String, count: Int, bytes: Int, completion: @escaping @Sendable ([AdminRecord]?) -> Void)

  /// Who has such credentials.
  ///
  /// - Parameter completion: as of ``snapshot(_:completion:)``.
  func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void)

  /// What became of somebody who was let in before; nil when it may not come in any more.
  func reconsider(_ identity: Identity) -> Identity?
}

/// How far the broker has come.
public enum AdminStage: Sendable {
  case starting
  case ready
  case stopping
}

/// How much of a broker is asked for.
public struct AdminSnapshotRequest: Hashable, Sendable {
  /// The one topic that is asked for; nil for all.
  public var topic: String?
  /// The most connections that are told one by one.
  public var connections: Int
  /// The most subscriptions, and publications, that are told one by one of each topic.
  public var streams: Int

  public init(topic: String? = nil, connections: Int = 0, streams: Int = 0) {
    self.topic = topic
    self.connections = connections
    self.streams = streams
  }
}

/// A record as it is shown to people.
public struct AdminRecord: Sendable {
  public var offset: UInt64
  /// Milliseconds since 1970.
  public var time: Int64
  /// Nil for a record without.
  public var key: [UInt8]?
  public var headers: [(name: String, value: [UInt8])]
  /// The beginning of the payload, or all of it.
  public var payload: [UInt8]
  /// How many bytes the payload has in fact.
  public var size: Int

  public init(
    offset: UInt64, time: Int64, key: [UInt8]? = nil, headers: [(name: String, value: [UInt8])] = [],
    payload: [UInt8], size: Int? = nil
  ) {
    self.offset = offset
    self.time = time
    self.key = key
    self.headers = headers
    self.payload = payload
    self.size = size ?? payload.count
  }
}
