import CMalloc
import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker in this process whose charges are compared with heap growth. Nothing else runs in the process.
final class LedgerRig {
  let small: SmallWorld
  private(set) var client: ScriptedClient
  /// All clients that have connected: an open stream needs its connection.
  private var clients: [ScriptedClient] = []
  private var streams: UInt32 = 0
  private var unanswered = 0

  init() throws {
    var conditions = SimulatedConditions.calm
    conditions.freesBuffers = true
    small = try SmallWorld(conditions: conditions, storage: StoreConfiguration(MemoryStore())) {
      configuration in
      configuration.limits.memory = 1 << 36
      configuration.limits.memoryPerAddress = 1 << 36
      configuration.limits.keepalive = 0
      configuration.limits.cursors = 1_000_000
      configuration.limits.producers = 1_000_000
      configuration.limits.matches = 10_000_000
      configuration.limits.bufferedPerConnection = 1 << 32
    }
    client = small.connect(keepalive: 0)
    clients = [client]
    _ = client.ask(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1, in: small)
    var durable = TopicSettings()
    durable.storage = .durable
    _ = client.ask(TopicCreate(topic: "d", settings: durable), stream: 1, in: small)
    client.forget()
  }

  /// Bytes that the process has allocated and not freed.
  static var heap: Int {
    let info = mallinfo2()
    return Int(info.uordblks) + Int(info.hblkhd)
  }

  var charged: Int { small.broker.core.memory.used }

  /// Returns an unused stream; on a new connection if the present one has nearly reached its limit.
  func stream() -> UInt32 {
    if streams >= 4_000 { reconnect() }
    streams += 1
    return streams
  }

  /// Opens another connection, on which later frames are sent.
  func reconnect(named name: String? = nil) {
    flush()
    client = small.connect(raw: name != nil, keepalive: 0)
    if let name { client.send(Hello(maximumFrame: 1 << 20, keepalive: 0, name: name), stream: 0) }
    clients.append(client)
    streams = 0
    flush()
  }

  var connections: Int { clients.count }

  func send(_ frame: some Frame, _ stream: UInt32) { send(frame.encoded(stream: stream)) }

  func send(_ bytes: [UInt8]) {
    client.send(bytes)
    unanswered += bytes.count
    if unanswered >= 1 << 18 { flush() }
  }

  /// Waits until the broker has handled all frames.
  func flush() {
    unanswered = 0
    client.send(Ping(token: 1), stream: 0)
    _ = small.world.run(limit: .seconds(600)) { client.hasEnded || client.types.contains(.pong) }
    client.forget()
  }

  /// Waits until all pending work is done.
  func settle() {
    if !clients.isEmpty { flush() }
    small.settle(.seconds(2))
    for client in clients { client.forget() }
  }

  /// Closes all connections.
  func close() {
    for client in clients { client.close() }
    clients = []
    small.settle(.seconds(3))
  }
}
