import Glibc
import SluiceAccess
import SluiceBroker
import SluiceHTTP
import SluiceIO
import SluiceTLS
import SluiceWire

/// The admin listener: health, metrics, an API and a page for operators, over HTTP, on a thread of its own.
///
/// From any thread.
public final class AdminServer: Sendable {
  /// The bound address, with the actual port.
  public let address: SocketAddress
  private let listener: any Listener
  private let loop: EpollLoop
  private let service: AdminService
  private let connections: AdminConnections

  /// Listens and answers requests.
  ///
  /// - Throws: when the address can't be bound, or the system has no more threads or descriptors.
  public init(at address: SocketAddress, _ source: any AdminSource, _ options: AdminOptions) throws(IOError) {
    let loop = try EpollLoop.start(name: "admin")
    let service = AdminService(source, on: loop, options)
    let connections = AdminConnections(service, options.limits, on: loop)
    (self.loop, self.service, self.connections) = (loop, service, connections)
    let network = TLSNetwork(over: SocketNetwork(), server: options.tls)
    do {
      listener = try network.listen(at: address.overHTTP, group: LoopGroup([loop])) { stream, _ in
        connections.accept(stream)
      }
    } catch {
      loop.stop()
      throw error as? IOError ?? IOError(action: "listen at \(address)", code: EINVAL, reason: "\(error)")
    }
    self.address = address.bound(to: listener.address)
    loop.execute { service.sampler.start() }
  }

  /// Whether it looks for the broker's problems: true unless it keeps no history.
  public var looksForProblems: Bool { service.sampler.isOn }

  /// Closes all connections, and waits for that. Must not be called on its own thread.
  public func stop() {
    listener.close()
    loop.execute { [loop, service, connections] in
      service.feed.end()
      service.sampler.end()
      connections.end()
      loop.stop()
    }
    loop.join()
  }
}

extension SocketAddress {
  /// The address in a form that makes TLS name HTTP as the protocol to clients that offer protocols.
  fileprivate var overHTTP: SocketAddress {
    guard case .tls(let host, let port) = self else { return self }
    return .door(.http, host, port: port, isSecure: true)
  }
}

/// The settings of the admin listener.
public struct AdminOptions: Sendable {
  /// The most topics with lines of their own in the metrics; the others are summed in one.
  public var topics = 1_000
  /// The most groups with lines of their own in the metrics, of all topics together.
  public var groups = 1_000
  /// The most durable cursors with lines of their own in the metrics, of all topics together; 0 by default, since there may be very many.
  public var cursors = 0
  /// Whether only this machine can reach the listener. It then answers only requests to names of this machine: see ``HostCheck``.
  public var isLocal = true
  /// The programs' version.
  public var version = ""
  /// Nil for plain HTTP.
  public var tls: TLSServer?
  public var limits = AdminLimits()
  /// Whether visitors with the permission may change topics and close connections.
  public var actions = false
  /// With a length of 0, the broker is sampled only for watchers of the events: there is no history, and no search for problems.
  public var history = HistoryLimits()
  public var problems = ProblemLimits()

  public init() {}
}

/// Limits on the work that visitors can cause.
public struct AdminLimits: Sendable {
  /// Connections at a time; an eighth as many further ones wait, and more are rejected.
  public var connections = 64
  /// Watchers of the events at a time.
  public var watchers = 32
  /// Seconds without any bytes on a connection, after which it is closed.
  public var idle = 15
  /// Seconds until a request's head must be complete, and for which an idle connection is kept; 1 when three quarters of the connections are in use.
  public var head = 10
  /// Seconds until an answer must be sent; events have no limit.
  public var answer = 60
  /// Seconds in which the broker must provide a snapshot or records.
  public var source = 10
  /// The longest head of a request in bytes.
  public var connectionBytes = 32 << 10
  /// Topics in one answer, and among the events.
  public var topics = 5_000
  /// Connections in one answer.
  public var listedConnections = 1_000
  /// Identities with their permissions in one answer.
  public var listedUsers = 1_000
  /// Subscriptions, and publications, of one topic in one answer.
  public var streams = 200
  /// Durable cursors, and groups, in one answer.
  public var consumers = 1_000
  /// Records in one answer, and bytes of them.
  public var records = 100
  public var recordBytes = 8 << 20
  /// The approximate number of bytes of records to search for one answer.
  public var scannedBytes = 32 << 20
  /// The most bytes of a payload to show.
  public var payloadBytes = 2 << 10
  /// The longest body of a request in bytes.
  public var bodyBytes = 16 << 10

  public init() {}

  /// The limits on the length of requests.
  var http: HTTPLimits {
    var limits = HTTPLimits()
    limits.head = connectionBytes
    limits.body = bodyBytes
    return limits
  }
}

/// The source of the admin listener's data: a broker, or a test fixture. From any thread.
public protocol AdminSource: Sendable {
  var stage: AdminStage { get }

  /// Whether clients must authenticate. Visitors of the admin listener must then authenticate, too.
  var authenticatesClients: Bool { get }

  /// Where clients connect; empty before the broker listens.
  var addresses: [SocketAddress] { get }

  /// The settings in force, in the order of the help.
  var settings: [AppliedSetting] { get }

  /// Users, keys of tokens and permissions; nil where clients don't authenticate.
  var access: AccessPolicy? { get }

  /// The broker's store; nil for a broker without durable topics, or before there is one.
  var storage: StoreSnapshot? { get }

  /// The cluster that the broker is a node of; nil for a broker of one node.
  var cluster: ClusterSnapshot? { get }

  /// The number of log lines that were dropped because their reader was too slow.
  var droppedLogLines: Int { get }

  /// Gathers a snapshot of the broker.
  ///
  /// - Parameter completion: called once, on any thread; not called when the broker stops before. Its argument assembles the snapshot, which may take
  ///   milliseconds.
  func snapshot(
    _ request: SnapshotRequest,
    completion: @escaping @Sendable (@escaping @Sendable () -> BrokerSnapshot) -> Void)

  /// Sets the problems that clients of the broker's own protocol get. Some problems show in counters of the last minute, so only periodic searches find them.
  ///
  /// - Parameters:
  ///   - problems: the problems, the most urgent ones first.
  ///   - kinds: the problems by kind, including those beyond the limit of the list.
  ///   - time: the time of the search.
  func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime)

  /// Searches a topic for records. `loop` does the work, a portion at a time.
  ///
  /// - Parameter completion: called once, on `loop`, with the records or the reason why there are none; not called when the broker stops before.
  func records(
    of topic: String, _ query: RecordQuery, on loop: any EventLoop,
    completion: @escaping @Sendable (Result<RecordPage, WireError>) -> Void)

  /// Looks up the identity with these credentials.
  ///
  /// - Parameter completion: like that of ``snapshot(_:completion:)``.
  func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void)

  /// The present permissions of an identity that was authenticated before; nil when it may no longer connect.
  func reconsider(_ identity: Identity) -> Identity?

  /// Administers the broker with the permissions of `identity`.
  ///
  /// - Parameter completion: like that of ``snapshot(_:completion:)``; called when the change is on disk or was rejected.
  func administer(
    _ request: AdministrationRequest, as identity: Identity, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Void, WireError>) -> Void)
}

/// The stage of the broker's lifetime.
public enum AdminStage: Sendable {
  case starting
  case ready
  case stopping
}
