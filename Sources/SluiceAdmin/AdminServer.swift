import Glibc
import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Synchronization

/// The admin listener: health, metrics, an API and a page for people, over HTTP, on a thread of its own.
///
/// From any thread.
public final class AdminServer: Sendable {
  /// Where it listens, with the real port.
  public let address: SocketAddress
  /// Keeps the file of a Unix socket until the end.
  private let sockets: ListeningSockets
  private let loop: EpollLoop
  private let service: AdminService
  /// Those that accept connections, each with a copy of its listening socket from which another one can be made.
  private let servers: Mutex<[(server: HTTPServer, socket: Int32)]>
  private let limits: AdminLimits

  /// Listens, and answers from now on.
  ///
  /// - Throws: when the address can't be bound, or the system has no more threads or descriptors.
  public init(at address: SocketAddress, _ source: any AdminSource, _ options: AdminOptions) throws(IOError) {
    // TLS is the library's.
    if case .tls(let host, let port) = address {
      sockets = try ListeningSockets(at: .host(host, port: port))
    } else {
      sockets = try ListeningSockets(at: address)
    }
    if address.hasTLS, case .host(let host, let port) = sockets.address {
      self.address = .tls(host, port: port)
    } else {
      self.address = sockets.address
    }
    loop = try EpollLoop.start(name: "admin")
    service = AdminService(source, on: loop, options)
    limits = options.limits
    var servers: [(server: HTTPServer, socket: Int32)] = []
    do throws(IOError) {
      while let descriptor = sockets.take() {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        servers.append((try HTTPServer(descriptor, service, on: loop, options.limits, options.tls), copy))
      }
    } catch {
      for (server, socket) in servers {
        server.stop()
        close(socket)
      }
      loop.stop()
      throw error
    }
    self.servers = Mutex(servers)
    let made = servers.map(\.server)
    loop.execute { [made, service] in
      for server in made { server.start() }
      service.sampler.start()
    }
  }

  /// Whether it looks for the broker's problems: it does unless it keeps no history.
  public var looksForProblems: Bool { service.sampler.isOn }

  /// Closes every connection, and waits for that. Not on its own thread.
  public func stop() {
    let ended = servers.withLock { servers in
      defer { servers = [] }
      return servers
    }
    loop.execute { [loop, service, ended] in
      service.feed.end()
      service.sampler.end()
      for (server, socket) in ended {
        server.stop()
        close(socket)
      }
      loop.stop()
    }
    loop.join()
  }
}

extension AdminServer {
  /// Serves new connections with other certificates. Connections that are open are closed: watchers of the events come back by themselves.
  ///
  /// - Throws: when a server can't be made with them; the former ones go on then.
  public func reload(_ tls: AdminTLS) throws(IOError) {
    let former = servers.withLock { $0 }
    var new: [(server: HTTPServer, socket: Int32)] = []
    do throws(IOError) {
      for (_, socket) in former {
        let descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw IOError(action: "copy the admin listener", code: errno) }
        new.append((try HTTPServer(descriptor, service, on: loop, limits, tls), socket))
      }
    } catch {
      let made = new.map(\.server)
      loop.execute {
        for server in made { server.stop() }
      }
      throw error
    }
    servers.withLock { [new] servers in servers = new }
    let (old, made) = (former.map(\.server), new.map(\.server))
    loop.execute {
      for server in made { server.start() }
      for server in old { server.stop() }
    }
  }
}

/// The certificates of the admin listener, and their private key, in PEM.
public struct AdminTLS: Hashable, Sendable {
  public var certificate: String
  public var key: String

  public init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
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
  public var tls: AdminTLS?
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
  /// Connections at a time; others wait to be accepted.
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
  /// Bytes for a connection's requests and responses: the head of a request has to fit into them.
  public var connectionBytes = 32 << 10
  /// Topics in one answer, and among the events.
  public var topics = 5_000
  /// Connections in one answer.
  public var listedConnections = 1_000
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
}

/// The source of what the admin listener shows: a broker, or a fixture of a test. From any thread.
public protocol AdminSource: Sendable {
  var stage: AdminStage { get }

  /// Whether clients have to authenticate. Then visitors of the admin listener have to, too.
  var authenticatesClients: Bool { get }

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
