import SluiceAccess
import SluiceAdmin
import SluiceBroker
import SluiceIO
import SluiceWire
import Synchronization

/// The admin listener's view of the broker, usable before the broker exists.
final class BrokerView: AdminSource {
  private struct State {
    var broker: Broker?
    var stage = AdminStage.starting
    var cluster: DaemonCluster?
    var addresses: [SocketAddress] = []
    var settings: @Sendable () -> [AppliedSetting] = { [] }
  }

  private let state = Mutex(State())
  let authenticatesClients: Bool

  init(authenticatesClients: Bool) {
    self.authenticatesClients = authenticatesClients
  }

  /// Sets the broker after its creation, before it serves clients.
  ///
  /// - Parameters:
  ///   - cluster: nil for a broker of one node.
  ///   - settings: returns those in force.
  func show(
    _ broker: Broker, _ cluster: DaemonCluster?, settings: @escaping @Sendable () -> [AppliedSetting]
  ) {
    state.withLock { state in
      state.broker = broker
      state.cluster = cluster
      state.settings = settings
    }
  }

  var addresses: [SocketAddress] {
    get { state.withLock { $0.addresses } }
    set { state.withLock { $0.addresses = newValue } }
  }

  var settings: [AppliedSetting] { state.withLock { $0.settings }() }

  var access: AccessPolicy? { broker?.access }

  var cluster: ClusterSnapshot? {
    let (cluster, broker) = state.withLock { ($0.cluster, $0.broker) }
    guard var snapshot = cluster?.snapshot else { return nil }
    snapshot.links = broker?.links ?? []
    return snapshot
  }

  var stage: AdminStage {
    get { state.withLock { $0.stage } }
    set { state.withLock { $0.stage = newValue } }
  }

  var storage: StoreSnapshot? { broker?.storage }

  var droppedLogLines: Int { LogOutput.standardError.droppedLines }

  private var broker: Broker? { state.withLock { $0.broker } }

  func snapshot(
    _ request: SnapshotRequest,
    completion: @escaping @Sendable (@escaping @Sendable () -> BrokerSnapshot) -> Void
  ) {
    broker?.snapshot(request) { gathered in completion { gathered.assembled() } }
  }

  func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime) {
    broker?.tell(problems, kinds, at: time)
  }

  func records(
    of topic: String, _ query: RecordQuery, on loop: any EventLoop,
    completion: @escaping @Sendable (Result<RecordPage, WireError>) -> Void
  ) {
    broker?.records(of: topic, query, on: loop, completion: completion)
  }

  func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void
  ) {
    broker?.authenticate(credentials, from: peer, completion: completion)
  }

  func reconsider(_ identity: Identity) -> Identity? { broker?.reconsider(identity) }

  func administer(
    _ request: AdministrationRequest, as identity: Identity, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Void, WireError>) -> Void
  ) {
    broker?.administer(request, as: identity, from: peer, named: "admin listener", completion: completion)
  }
}
