import Glibc
import SluiceIO
import SluiceSimulation
import SluiceTLS
import Synchronization
import TestSupport
import Testing

/// The environment of a contract test: loops and a network of one kind.
protocol Stage: AnyObject {
  var network: any Network { get }
  /// Two loops.
  var loops: [any EventLoop] { get }
  /// More bytes than a connection can buffer without a reader.
  var plenty: Int { get }
  /// An address to listen at that no other test uses.
  func freshAddress() -> SocketAddress
  /// Runs until `condition` holds. Returns false if it doesn't hold in time.
  func wait(until condition: () -> Bool) -> Bool
  /// Runs for a while in which a forbidden event would occur.
  func settle()
  /// Stops the loops.
  func end()
}

extension Stage {
  /// Runs `body` on `loop` and waits for its result.
  func run<Result: Sendable>(on loop: any EventLoop, _ body: @escaping @Sendable () -> Result) -> Result {
    let result = Shared<Result?>(nil)
    loop.execute {
      let value = body()
      result.set(value)
    }
    let done = wait { result.value != nil }
    precondition(done, "a job never ran")
    return result.value!
  }
}

/// A value that test and loops share.
final class Shared<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>

  init(_ value: Value) { mutex = Mutex(value) }

  var value: Value { mutex.withLock { $0 } }

  func set(_ value: Value) { mutex.withLock { $0 = value } }

  func change(_ body: @Sendable (inout Value) -> Void) { mutex.withLock { body(&$0) } }
}

/// The kinds of stage; each contract test runs on all of them.
enum Venue: CustomTestStringConvertible, Sendable {
  case tcp
  case unixSocket
  case simulated(seed: UInt64)
  case tls
  case simulatedTLS(seed: UInt64)

  static let all: [Venue] =
    [.tcp, .unixSocket] + (1...12).map { .simulated(seed: $0) } + [.tls]
    + (1...8).map { .simulatedTLS(seed: $0) }

  var testDescription: String { "\(self)" }

  /// Unix sockets have no reset: to the peer, an abort looks like a close.
  var hasResets: Bool {
    if case .unixSocket = self { false } else { true }
  }

  func use(_ body: (any Stage) throws -> Void) throws {
    let stage = try makeStage()
    defer { stage.end() }
    try body(stage)
  }

  private func makeStage() throws -> any Stage {
    switch self {
    case .tcp: try SocketStage { .host(Loopback.freshHost(), port: 0) }
    case .unixSocket: try SocketStage { .unix(SocketStage.freshPath()) }
    case .simulated(let seed): SimulatedStage(seed: seed)
    case .tls:
      try SocketStage(network: try Self.overTLS(SocketNetwork())) { .tls(Loopback.freshHost(), port: 0) }
    case .simulatedTLS(let seed): try SimulatedStage(seed: seed, secure: Self.overTLS)
    }
  }

  private static func overTLS(_ network: any Network) throws -> any Network {
    let certificates = try TestCertificates.shared()
    var options = TLSClientOptions()
    options.authorities = certificates.authority
    options.serverName = "localhost"
    return TLSNetwork(
      over: network,
      server: try TLSServer(TLSServerOptions(certificate: certificates.server, key: certificates.serverKey)),
      client: try TLSClient(options), patience: .seconds(600))
  }
}

/// Real loops, each with its thread, and real sockets.
final class SocketStage: Stage {
  let network: any Network
  let group: LoopGroup
  private let address: () -> SocketAddress

  /// Long enough for a busy machine; a test that succeeds never waits for it.
  private static let patience = 120.0

  init(network: any Network = SocketNetwork(), address: @escaping () -> SocketAddress) throws {
    self.network = network
    group = try LoopGroup.threads(count: 2)
    self.address = address
    for case let loop? in group.loops.map(\.epoll) {
      // A stream that closes because this process was paused would look like a broken contract.
      loop.execute { loop.peerPatience = .seconds(600) }
    }
  }

  let plenty = 16_000_000
  var loops: [any EventLoop] { group.loops }

  func freshAddress() -> SocketAddress { address() }

  private static let paths = Atomic<Int>(0)

  static func freshPath() -> String {
    "/tmp/sluice-io-\(getpid())-\(paths.wrappingAdd(1, ordering: .relaxed).newValue).socket"
  }

  func wait(until condition: () -> Bool) -> Bool {
    var waited = 0.0
    while !condition() {
      if waited > Self.patience { return false }
      usleep(500)
      waited += 0.0005
    }
    return true
  }

  func settle() { usleep(30_000) }

  func end() { group.stopThreads() }
}

/// A simulated world, all in the test's thread.
final class SimulatedStage: Stage {
  let world: SimulatedWorld
  let network: any Network
  private let address: SocketAddress

  init(seed: UInt64) {
    world = SimulatedWorld(seed: seed, loops: 2)
    network = world.network
    address = .host("broker", port: 0)
  }

  /// With TLS over the simulated network.
  init(seed: UInt64, secure: (any Network) throws -> any Network) throws {
    world = SimulatedWorld(seed: seed, loops: 2)
    network = try secure(world.network)
    address = .tls("broker", port: 0)
  }

  let plenty = 300_000
  var loops: [any EventLoop] { world.loops }
  func freshAddress() -> SocketAddress { address }
  func wait(until condition: () -> Bool) -> Bool { world.run(until: condition) }
  func settle() { world.run(for: .milliseconds(50)) }
  func end() {}
}
