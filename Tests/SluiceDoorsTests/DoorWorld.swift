import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceTopics
import SluiceWire
import Synchronization
import Testing

@testable import SluiceDoors

/// A broker with gateways, and its clients, in a simulated world.
final class DoorWorld {
  let world: SimulatedWorld
  private(set) var broker: Broker
  private var network: DoorNetwork
  let loop: SimulatedLoop
  /// The gateways' addresses, in the order of the configuration.
  private(set) var addresses: [SocketAddress]
  private let make: (SimulatedWorld) throws -> (Broker, DoorNetwork)
  private let events = DoorEvents()

  /// - Parameters:
  ///   - quietAfter: how long an MQTT connection is idle before the gateway packs it. The default is at once, since most can go wrong there.
  ///   - store: the store of durable topics. With a store, all topics are durable unless `configure` sets something else.
  init(
    seed: UInt64 = 1, loops: Int = 1, _ doors: [Door], options: DoorOptions = DoorOptions(),
    conditions: SimulatedConditions = .calm, quietAfter: Duration = .zero, store: (any TopicStore)? = nil,
    access: AccessPolicy? = nil,
    _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws {
    world = SimulatedWorld(seed: seed, loops: loops, conditions: conditions)
    var configuration = BrokerConfiguration()
    configuration.identity = 1
    configuration.listen =
      [.host("127.0.0.1", port: 0)] + doors.map { .door($0, "127.0.0.1", port: 0, isSecure: false) }
    var options = options
    options.mqtt.quietAfter = quietAfter
    if store != nil {
      options.keepsSessions = true
      configuration.topicDefaults.storage = .durable
    }
    configure(&configuration)
    make = { [configuration, options, events] world in
      let network = DoorNetwork(over: world.network, options) { event in events.add(event) }
      let broker = try Broker(
        configuration, network: network, group: world.group,
        storage: store.map { StoreConfiguration($0) }, access: access)
      return (broker, network)
    }
    (broker, network) = try make(world)
    addresses = try broker.start()
    loop = world.makeLoop(name: "clients")
  }

  /// Stops the broker, at once or in an orderly way, and starts another one on the same store.
  ///
  /// - Parameter meanwhile: called while no broker runs.
  func restart(orderly: Bool = false, meanwhile: () -> Void = {}) throws {
    if orderly { broker.shutdown() } else { broker.stop() }
    settle(.seconds(20))
    meanwhile()
    (broker, network) = try make(world)
    addresses = try broker.start()
    settle()
  }

  /// Returns a byte client that is connected to one of the addresses. Index 0 is the native address.
  func connect(_ index: Int) -> ByteClient {
    let client = ByteClient(loop: loop)
    loop.perform {
      _ = world.network.connect(to: addresses[index].plain ?? addresses[index], on: loop) { result in
        if case .success(let stream) = result { client.begin(stream) }
      }
    }
    _ = world.run(limit: .seconds(1)) { client.isConnected }
    return client
  }

  /// Runs `body` on the loop of the broker's own clients.
  func onBroker(_ body: () -> Void) { world.loops[0].perform(body) }

  /// A port of the broker, which is open; nil without a broker.
  func port(_ terms: TopicPort.Terms, user: any TopicPortUser) -> TopicPort? {
    guard let accept = network.sessions.broker.accept else { return nil }
    let loop = world.loops[0]
    let port = TopicPort(terms, user: user, on: loop) { accept($0, loop) }
    onBroker { port.open() }
    return port
  }

  /// How many connections of MQTT are packed.
  var quietConnections: Int {
    network.sessions.entries.withLock { entries in
      entries.connections.values.count { $0.isQuiet }
    }
  }

  /// The number of MQTT connections that the broker refused and whose CONNECT hasn't arrived.
  var waitingRefusals: Int { network.sessions.waitingRefusals }

  /// Whether values of `$SYS/broker/…` are computed now.
  var computesSystemValues: Bool { network.sessions.system.isComputing }

  /// The number of HTTP connections that the broker refused and whose request hasn't arrived.
  var waitingHTTPRefusals: Int { network.refusals.count }

  /// Takes the events for the operator.
  func takeEvents() -> [DoorEvent] { events.take() }

  /// Runs the world for a time, so that pending work is done.
  func settle(_ time: Duration = .milliseconds(100)) { world.run(for: time) }
}

/// Events for the operator. From any thread.
final class DoorEvents: Sendable {
  private let events = Mutex<[DoorEvent]>([])

  func add(_ event: DoorEvent) { events.withLock { $0.append(event) } }

  func take() -> [DoorEvent] {
    events.withLock { events in
      defer { events = [] }
      return events
    }
  }
}

/// A client that sends bytes and keeps the bytes that it receives.
final class ByteClient: ByteStreamHandler {
  private let loop: SimulatedLoop
  private var stream: (any ByteStream)?
  private var outbox: [UInt8] = []
  private(set) var received: [UInt8] = []
  private(set) var hasEnded = false

  init(loop: SimulatedLoop) {
    self.loop = loop
  }

  var isConnected: Bool { stream != nil }
  var text: String { String(decoding: received, as: UTF8.self) }

  func begin(_ stream: any ByteStream) {
    self.stream = stream
    stream.start(self)
  }

  func send(_ text: String) { send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) {
    outbox += bytes
    loop.perform { streamWritable() }
  }

  /// Takes the bytes that were received so far.
  func take() -> [UInt8] {
    defer { received = [] }
    return received
  }

  /// While set, the client reads nothing.
  var isPaused: Bool {
    get { stream?.readsPaused ?? false }
    set { loop.perform { stream?.readsPaused = newValue } }
  }

  func close() { loop.perform { stream?.close() } }

  func abort() { loop.perform { stream?.abort() } }

  func streamReadable() {
    guard let stream else { return }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    buffer.withUnsafeMutableBytes { buffer in
      switch stream.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed: hasEnded = true
      case .bytes(let count): received += Array(buffer[..<count])
      }
    }
  }

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    if case .wrote(let count) = outbox.withUnsafeBytes({ stream.write($0) }) { outbox.removeFirst(count) }
  }

  func streamFailed(_ error: IOError) { hasEnded = true }
}
