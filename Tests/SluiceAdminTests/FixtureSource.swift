import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Synchronization

@testable import SluiceAdmin

/// A broker made up by a test.
final class FixtureSource: AdminSource {
  func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime) {}

  struct State: Sendable {
    var stage = AdminStage.ready
    var snapshot = BrokerSnapshot()
    var records: [String: [RecordSnapshot]] = [:]
    var requests: [SnapshotRequest] = []
    var queries: [RecordQuery] = []
    /// Whether it doesn't reply.
    var isSilent = false
    var policy: AccessPolicy?
    var attempts = 0
    /// The administrative requests it received, and their identities.
    var administered: [(request: AdministrationRequest, identity: String)] = []
    var refusal: WireError?
    var droppedLogLines = 0
    var cluster: ClusterSnapshot?
  }

  let state: Mutex<State>

  init(_ change: (inout State) -> Void = { _ in }) {
    var state = State()
    change(&state)
    self.state = Mutex(state)
  }

  var stage: AdminStage { state.withLock { $0.stage } }
  var authenticatesClients: Bool { state.withLock { $0.policy != nil } }
  var cluster: ClusterSnapshot? { state.withLock { $0.cluster } }
  var storage: StoreSnapshot? { state.withLock { $0.snapshot.storage } }
  var droppedLogLines: Int { state.withLock { $0.droppedLogLines } }
  var requests: [SnapshotRequest] { state.withLock { $0.requests } }

  func snapshot(
    _ request: SnapshotRequest,
    completion: @escaping @Sendable (@escaping @Sendable () -> BrokerSnapshot) -> Void
  ) {
    let snapshot = state.withLock { state in
      state.requests.append(request)
      return state.isSilent ? nil : state.snapshot
    }
    if let snapshot { completion { snapshot } }
  }

  func records(
    of topic: String, _ query: RecordQuery, on loop: any EventLoop,
    completion: @escaping @Sendable (Result<RecordPage, WireError>) -> Void
  ) {
    let found = state.withLock { state in
      state.queries.append(query)
      return state.records[topic]
    }
    loop.execute {
      guard let found else {
        return completion(.failure(WireError(.unknownTopic, "there is no topic \(topic)")))
      }
      var page = RecordPage()
      page.records = Array(found.suffix(query.count))
      page.nextOffset = (found.last?.offset).map { $0 + 1 } ?? 0
      page.through = page.nextOffset
      page.scannedRecords = UInt64(found.count)
      completion(.success(page))
    }
  }

  func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void
  ) {
    let policy = state.withLock { state in
      state.attempts += 1
      return state.policy ?? AccessPolicy()
    }
    completion(
      Result { () throws(WireError) in
        try policy.authenticate(credentials, peerName: nil, peerExpires: nil, now: 0)
      })
  }

  func reconsider(_ identity: Identity) -> Identity? { state.withLock { $0.policy }?.reconsider(identity) }

  func administer(
    _ request: AdministrationRequest, as identity: Identity, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Void, WireError>) -> Void
  ) {
    let refusal = state.withLock { state in
      state.administered.append((request, identity.name))
      return state.refusal
    }
    completion(refusal.map { .failure($0) } ?? .success(()))
  }
}

extension TopicSnapshot {
  /// An existing topic, with traffic if `change` sets it.
  init(_ name: String, _ change: (inout TopicSnapshot) -> Void = { _ in }) {
    self.init(
      summary: TopicSummary(
        topic: name, epoch: 1, firstOffset: 0, nextOffset: 0, bytes: 0, ending: nil, subscriptions: 0,
        publications: 0), settings: TopicSettings())
    change(&self)
  }
}
