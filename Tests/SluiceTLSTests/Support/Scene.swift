import Glibc
import SluiceIO
import SluiceSimulation
import SluiceTLS
import TestSupport
import Testing

/// A TLS server and the clients that connect to it, in a simulated world: the server on the first loop, clients on the second.
final class Scene {
  let world: SimulatedWorld
  let certificates: TestCertificates
  let server: TLSServer
  private(set) var listener: (any Listener)!
  /// The events of the server's handlers, in the order of their connections.
  private(set) var accepted: [Talker] = []
  private(set) var refusals: [IOError] = []
  /// Called with each of the server's sides before it is started.
  var prepare: (Talker) -> Void = { _ in }
  private var serverNetwork: TLSNetwork!

  private final class Box: @unchecked Sendable {
    // A world and all its objects are used by one thread.
    weak var scene: Scene?
  }

  init(
    seed: UInt64 = 1, conditions: SimulatedConditions = SimulatedConditions(),
    certificates: TestCertificates? = nil, host: String = "localhost",
    _ change: (inout TLSServerOptions) -> Void = { _ in }
  ) throws {
    world = SimulatedWorld(seed: seed, loops: 2, conditions: conditions)
    world.wallClock = Int64(time(nil)) * 1_000
    self.certificates = try certificates ?? .shared()
    var options = TLSServerOptions(
      certificate: self.certificates.server, key: self.certificates.serverKey)
    options.clientAuthorities = self.certificates.authority
    change(&options)
    server = try TLSServer(options)
    let box = Box()
    serverNetwork = TLSNetwork(over: world.network, server: server) { _, error in
      box.scene?.refusals.append(error)
    }
    box.scene = self
    let loop = world.loops[0]
    listener = try serverNetwork.listen(at: .tls(host, port: 0), group: LoopGroup([loop])) { stream, _ in
      guard let scene = box.scene else { return }
      let talker = Talker(stream, on: scene.world.loops[0])
      scene.prepare(talker)
      scene.accepted.append(talker)
      stream.start(talker)
    }
  }

  /// A client's side that trusts the scene's authority.
  func client(_ change: (inout TLSClientOptions) -> Void = { _ in }) throws -> TLSClient {
    var options = TLSClientOptions()
    options.authorities = certificates.authority
    change(&options)
    return try TLSClient(options)
  }

  /// A client with the scene's client certificate.
  func namedClient() throws -> TLSClient {
    try client { [certificates] in
      $0.certificate = certificates.client
      $0.key = certificates.clientKey
    }
  }

  /// Connects, and starts the client's side.
  func connect(
    _ client: TLSClient, to address: SocketAddress? = nil, _ prepare: @escaping (Talker) -> Void = { _ in }
  ) throws -> Result<Talker, IOError> {
    var result: Result<Talker, IOError>?
    let network = TLSNetwork(over: world.network, client: client)
    let loop = world.loops[1]
    loop.perform {
      _ = network.connect(to: address ?? listener.address, on: loop) { opened in
        result = opened.map { stream in
          let talker = Talker(stream, on: loop)
          prepare(talker)
          stream.start(talker)
          return talker
        }
      }
    }
    _ = world.run { result != nil }
    return try #require(result)
  }

  /// Both sides of a connection that is established.
  func pair(
    _ client: TLSClient? = nil, _ prepare: @escaping (Talker) -> Void = { _ in }
  ) throws -> (client: Talker, server: Talker) {
    let before = accepted.count
    let ours = try self.connect(try client ?? self.client(), to: nil, prepare).get()
    #expect(world.run { self.accepted.count > before && self.accepted[before].stream.security != nil })
    return (ours, accepted[before])
  }

  /// Drops all events that the server's side has recorded so far.
  func forget() {
    accepted = []
    prepare = { _ in }
  }
}
