import Glibc
import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker and any number of clients, in a world in which only the order of simultaneous events is random.
final class SmallWorld {
  let world: SimulatedWorld
  let broker: Broker
  let loop: SimulatedLoop
  let address: SocketAddress

  init(
    seed: UInt64 = 1, brokerLoops: Int = 1, conditions: SimulatedConditions = .calm,
    access: (policy: AccessPolicy, verify: Authenticator.Verification)? = nil,
    storage: StoreConfiguration? = nil, _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws {
    world = SimulatedWorld(seed: seed, loops: brokerLoops, conditions: conditions)
    var configuration = BrokerConfiguration()
    configuration.identity = 1
    configure(&configuration)
    broker = try Broker(
      configuration, network: world.network, loops: BrokerLoops(serving: world.group), storage: storage,
      access: access?.policy, verify: access?.verify ?? Authenticator.verify)
    address = try broker.start()[0]
    loop = world.makeLoop(name: "clients")
  }

  /// Connects a client and waits for WELCOME, unless it is `raw`.
  func connect(
    raw: Bool = false, keepalive: UInt32 = 30_000, maximumFrame: UInt32 = 1 << 20,
    credentials: Credentials = .none
  ) -> ScriptedClient {
    let client = ScriptedClient.connected(to: address, in: world, on: loop)
    if raw { return client }
    client.send(
      Hello(maximumFrame: maximumFrame, keepalive: keepalive, name: "test", credentials: credentials),
      stream: 0)
    settle()
    return client
  }

  /// Runs the world for that time, so that pending work finishes.
  func settle(_ time: Duration = .milliseconds(100)) {
    world.run(for: time)
  }
}

/// A client that sends frames on request, and keeps the received frames.
final class ScriptedClient: ByteStreamHandler {
  /// A received frame.
  struct Received: CustomStringConvertible {
    var header: FrameHeader
    var body: [UInt8]

    func decoded<F: Frame>(_ type: F.Type) throws -> F { try body.withUnsafeBytes { try F(body: $0) } }

    var description: String { body.withUnsafeBytes { SimulatedPeer.describe(header, $0) } }
  }

  private let loop: SimulatedLoop
  private(set) var stream: (any ByteStream)?
  private var decoder = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)
  private var outbox: [UInt8] = []
  private(set) var frames: [Received] = []
  private(set) var hasEnded = false

  init(loop: SimulatedLoop) {
    self.loop = loop
  }

  /// A client connected to that address, if connecting takes at most a second.
  static func connected(
    to address: SocketAddress, in world: SimulatedWorld, on loop: SimulatedLoop
  ) -> ScriptedClient {
    let client = ScriptedClient(loop: loop)
    loop.perform {
      _ = world.network.connect(to: address, on: loop) { result in
        if case .success(let stream) = result { client.begin(stream) }
      }
    }
    _ = world.run(limit: .seconds(1)) { client.isConnected }
    return client
  }

  var isConnected: Bool { stream != nil }
  var types: [FrameType] { frames.map(\.header.type) }

  func frames(on stream: UInt32) -> [Received] { frames.filter { $0.header.stream == stream } }

  func forget() { frames = [] }

  func begin(_ stream: any ByteStream) {
    self.stream = stream
    stream.start(self)
  }

  func send(_ frame: some Frame, stream: UInt32) { send(frame.encoded(stream: stream)) }

  func publish(_ payloads: [[UInt8]], from sequence: UInt64, stream: UInt32, flags: UInt8 = 0) {
    var builder = BatchBuilder()
    for payload in payloads { payload.withUnsafeBytes { builder.append($0) } }
    publish(builder, from: sequence, stream: stream, flags: flags)
  }

  func publish(_ builder: BatchBuilder, from sequence: UInt64, stream: UInt32, flags: UInt8 = 0) {
    send(builder.publishFrame(from: sequence, stream: stream, flags: flags))
  }

  func send(_ bytes: [UInt8]) {
    outbox += bytes
    loop.perform { streamWritable() }
  }

  /// Whether reading is paused.
  var isPaused: Bool {
    get { stream?.readsPaused ?? false }
    set { loop.perform { stream?.readsPaused = newValue } }
  }

  func close() { loop.perform { stream?.close() } }

  // MARK: ByteStreamHandler

  func streamReadable() {
    guard let stream else { return }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    buffer.withUnsafeMutableBytes { buffer in
      switch stream.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed: hasEnded = true
      case .bytes(let count):
        // Bytes that violate the protocol are ignored; tests notice the missing frames.
        _ = try? decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { header, body in
          frames.append(Received(header: header, body: Array(body)))
          return true
        }
      }
    }
  }

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeMutableBytes { bytes in
      var vector = iovec(iov_base: bytes.baseAddress!, iov_len: bytes.count)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    if case .wrote(let count) = result { outbox.removeFirst(count) }
    // Free the memory, because tests compare the heap with the broker's charges.
    if outbox.isEmpty { outbox = [] }
  }

  func streamFailed(_ error: IOError) { hasEnded = true }
}
