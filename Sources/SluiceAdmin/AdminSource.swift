import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire

/// What the admin listener shows: a broker, or what a test has made up. From any thread.
public protocol AdminSource: Sendable {
  var stage: AdminStage { get }

  /// Whether clients are asked who they are. Then visitors of the admin listener are, too.
  var asksClients: Bool { get }

  /// The broker's store; nil for a broker without durable topics, or before there is one.
  var storage: StorageSnapshot? { get }

  /// Lines of the log that were left out, since nobody read it in time.
  var droppedLogLines: Int { get }

  /// The broker as it is now.
  ///
  /// - Parameter completion: called once, on any thread; not at all when the broker stops before. With what puts the snapshot together, which may
  ///   take milliseconds.
  func snapshot(
    _ request: SnapshotRequest,
    completion: @escaping @Sendable (@escaping @Sendable () -> BrokerSnapshot) -> Void)

  /// The newest records of a topic, the oldest of them first; nil when there is no such topic.
  ///
  /// - Parameters:
  ///   - count: the most records.
  ///   - bytes: the most bytes that they may have together, so that nothing huge is copied; one that has more isn't shown.
  ///   - completion: as of ``snapshot(_:completion:)``.
  func lastRecords(
    of topic: String, count: Int, bytes: Int, completion: @escaping @Sendable ([RecordSnapshot]?) -> Void)

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
