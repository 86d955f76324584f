import Glibc
import SluiceAccess
import SluiceBroker
import SluiceHTTP
import SluiceIO
import SluiceTLS
import SluiceWire

/// The admin listener: health, metrics, an API and a page for people, over HTTP, on a thread of its own.
///
/// From any thread.
public final class AdminServer: Sendable {
  /// Where it listens, with the real port.
  public let address: SocketAddress
  private let listener: any Listener
  private let loop: EpollLoop
  private let service: AdminService
  private let connections: AdminConnections

  /// Listens, and answers from now on.
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

  /// Whether it looks for the broker's problems: it does unless it keeps no history.
  public var looksForProblems: Bool { service.sampler.isOn }

  /// Closes every connection, and waits for that. Not on its own thread.
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
  /// The address with the name by which TLS knows HTTP: clients that name protocols name that one.
  fileprivate var overHTTP: SocketAddress {
    guard case .tls(let host, let port) = self else { return self }
    return .door(.http, host, port: port, isSecure: true)
  }
}

/// The settings of the admin listener.
public struct AdminOptions: Sendable {
  /// Topics that have lines of their own in the metrics; the others are summed in one.
  public var topics = 1_000
  /// Groups with lines of their own in the metrics, of all topics together.
  public var groups = 1_000
  /// Durable cursors with lines of their own in the metrics, of all topics together: none, since there may be very many.
  public var cursors = 0
  /// Whether only this machine reaches the listener. Then it answers to names of this machine alone: see ``HostCheck``.
  public var isLocal = true
  /// The programs' version.
  public var version = ""
  /// Nil for plain HTTP.
  public var tls: TLSServer?
  public var limits = AdminLimits()
  /// Whether visitors with the permission may change topics and close connections.
  public var actions = false
  /// With a length of 0 the broker isn't sampled but for watchers of the events: there is no history, and no problems are looked for.
  public var history = HistoryLimits()
  public var problems = ProblemLimits()

  public init() {}
}

/// Limits on what visitors can make the admin listener do.
public struct AdminLimits: Sendable {
  /// Connections at a time; an eighth as many others wait, and more are refused.
  public var connections = 64
  /// Watchers of the events at a time.
  public var watchers = 32
  /// Seconds in which nothing goes to or from a connection.
  public var idle = 15
  /// Seconds that a request's head may take to come, and a connection be kept for another one; one when three quarters of the connections are in use.
  public var head = 10
  /// Seconds that an answer may take to be found and sent; events go on for ever.
  public var answer = 60
  /// Seconds that the broker may take to provide a snapshot or records.
  public var source = 10
  /// The longest head of a request, in bytes.
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
  /// About the bytes of records that are looked at for one answer.
  public var scannedBytes = 32 << 20
  /// Bytes of a payload that are shown.
  public var payloadBytes = 2 << 10
  /// Bytes of a request's body.
  public var bodyBytes = 16 << 10

  public init() {}

  /// How long a request may be.
  var http: HTTPLimits {
    var limits = HTTPLimits()
    limits.head = connectionBytes
    limits.body = bodyBytes
    return limits
  }
}

/// The source of what the admin listener shows: a broker, or a fixture of a test. From any thread.
public protocol AdminSource: Sendable {
  var stage: AdminStage { get }

  /// Whether clients have to authenticate. Then visitors of the admin listener have to, too.
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

  /// Lines that were left out of the log because its reader was too slow.
  var droppedLogLines: Int { get }

  /// The broker as it is now.
  ///
  /// - Parameter completion: called once, on any thread; not at all when the broker stops before. Its argument assembles the snapshot, which may
  ///   take milliseconds.
  func snapshot(
    _ request: SnapshotRequest,
    completion: @escaping @Sendable (@escaping @Sendable () -> BrokerSnapshot) -> Void)

  /// Has the broker tell clients of its own protocol of these problems: counters of the last minute show some of them to regular looks only.
  ///
  /// - Parameters:
  ///   - problems: the most urgent ones first.
  ///   - kinds: the same by kind, those included that are too many to be listed.
  ///   - time: when they were found.
  func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime)

  /// Looks for records of a topic. The work is done on `loop`, a portion at a time.
  ///
  /// - Parameter completion: called once, on `loop`, with the records or the reason why there are none; not at all when the broker stops before.
  func records(
    of topic: String, _ query: RecordQuery, on loop: any EventLoop,
    completion: @escaping @Sendable (Result<RecordPage, WireError>) -> Void)

  /// Looks up the identity with these credentials.
  ///
  /// - Parameter completion: as of ``snapshot(_:completion:)``.
  func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void)

  /// The present state of an identity that was authenticated before; nil when it may not connect any more.
  func reconsider(_ identity: Identity) -> Identity?

  /// Administers the broker, with the permissions of `identity`.
  ///
  /// - Parameter completion: as of ``snapshot(_:completion:)``, when the change is on disk or was refused.
  func administer(
    _ request: AdministrationRequest, as identity: Identity, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Void, WireError>) -> Void)
}

/// The stage of the broker's life.
public enum AdminStage: Sendable {
  case starting
  case ready
  case stopping
}
