import Glibc
import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// The broker's end of one connection, controlled by a test: records the client's frames, and sends frames on request.
///
/// On a simulated network, on one thread.
final class ScriptedBroker: ByteStreamHandler, @unchecked Sendable {
  struct Received: Equatable, CustomStringConvertible {
    var type: FrameType
    var stream: UInt32
    var body: [UInt8]
    var flags: UInt8 = 0

    var description: String { "\(type) \(stream) (\(body.count) bytes)" }

    func decode<F: Frame>(_ type: F.Type = F.self) throws -> F {
      try #require(self.type == F.type)
      return try body.withUnsafeBytes { bytes throws(WireError) in try F(body: bytes) }
    }

    /// The payloads of a PUBLISH.
    var payloads: [String] {
      body.withUnsafeBytes { bytes in
        guard let (_, batch) = try? PublishHeader.decode(bytes) else { return [] }
        var iterator = BatchIterator(batch, time: 0)
        var payloads: [String] = []
        while let record = try? iterator.next() {
          payloads.append(String(decoding: record.body, as: UTF8.self))
        }
        return payloads
      }
    }
  }

  let world: SimulatedWorld
  let loop: SimulatedLoop
  let clientLoop: SimulatedLoop
  let address: SocketAddress
  private(set) var stream: (any ByteStream)?
  private(set) var received: [Received] = []
  private(set) var isOver = false
  /// The last HELLO.
  private(set) var hello: Hello?
  /// The number of connections so far.
  private(set) var accepted = 0
  /// Whether PINGs are answered automatically.
  var answersPings = true
  private let welcome: Welcome?
  private var decoder = FrameDecoder(maximumFrame: 1 << 24)

  /// - Parameters:
  ///   - welcome: the reply to HELLO; nil leaves that to the test.
  ///   - bytesPerSecond: the rate of the connection; nil for unlimited.
  convenience init(_ welcome: Welcome? = .test(), seed: UInt64 = 1, bytesPerSecond: Int? = nil) throws {
    var conditions = SimulatedConditions.calm
    conditions.bytesPerSecond = bytesPerSecond
    let world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    try self.init(
      welcome, at: .host("broker", port: 7420), in: world, clientLoop: world.makeLoop(name: "client"))
  }

  /// A broker beside another one, for the same clients.
  ///
  /// - Parameter network: the network on which it listens; nil for the world's network.
  convenience init(
    _ welcome: Welcome? = .test(), at address: SocketAddress, beside other: ScriptedBroker,
    on network: (any Network)? = nil
  ) throws {
    try self.init(welcome, at: address, in: other.world, clientLoop: other.clientLoop, on: network)
  }

  init(
    _ welcome: Welcome?, at address: SocketAddress, in world: SimulatedWorld, clientLoop: SimulatedLoop,
    on network: (any Network)? = nil
  ) throws {
    self.world = world
    self.clientLoop = clientLoop
    self.address = address
    self.welcome = welcome
    loop = world.makeLoop(name: "\(address)")
    let network = network ?? world.network
    _ = try network.listen(at: address, group: LoopGroup([loop])) { [unowned self] stream, _ in
      // A new connection replaces the last one.
      self.stream = stream
      decoder = FrameDecoder(maximumFrame: 1 << 24)
      isOver = false
      accepted += 1
      stream.start(self)
    }
  }

  /// A client of this broker, after the handshake.
  func client(_ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Client {
    try #require(try result(configure)).get()
  }

  /// The result of connecting; nil if there is none.
  func result(_ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Result<Client, ClientError>? {
    var options = ClientOptions()
    options.name = "scripted"
    options.keepalive = .seconds(1)
    options.reconnect = nil
    configure(&options)
    let box = Box<Result<Client, ClientError>?>(nil)
    Client.connect(to: address, options: options, network: world.network, loop: clientLoop) { box.value = $0 }
    _ = world.run { box.value != nil }
    return box.value
  }

  // MARK: What is sent

  func send(_ bytes: [UInt8]) {
    loop.perform {
      bytes.withUnsafeBytes { bytes in
        var vector = iovec(
          iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress!), iov_len: bytes.count)
        let result = withUnsafePointer(to: &vector) {
          stream?.write(UnsafeBufferPointer(start: $0, count: 1))
        }
        precondition(
          result == .wrote(bytes.count),
          "a test's frame is written at once, not \(String(describing: result))")
      }
    }
  }

  func send(_ frame: some Frame, _ stream: UInt32) {
    send(frame.encoded(stream: stream))
  }

  func close() {
    loop.perform { stream?.close() }
  }

  /// Breaks the connection, and lets the client reconnect up to its HELLO.
  func breakOff() {
    let before = accepted
    world.network.connections.last?.reset()
    _ = world.run(limit: .seconds(60)) { accepted > before }
    settle()
  }

  // MARK: What came

  /// Runs the world until pending frames have arrived.
  func settle() {
    world.run(for: .milliseconds(5))
  }

  /// The frames received since the last call, including those in transit.
  func takeReceived() -> [Received] {
    settle()
    defer { received = [] }
    return received
  }

  /// The single frame received since the last call.
  func takeOnly<F: Frame>(_ type: F.Type = F.self) throws -> F {
    let frames = takeReceived()
    try #require(frames.count == 1, "\(frames)")
    return try frames[0].decode(F.self)
  }

  func streamReadable() {
    withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
      switch stream!.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed:
        isOver = true
        stream?.close()
      case .bytes(let count):
        try! decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          take(
            Received(
              type: header.type, stream: header.stream, body: [UInt8](body), flags: header.flags))
          return true
        }
      }
    }
  }

  private func take(_ frame: Received) {
    switch frame.type {
    case .hello:
      hello = try? frame.decode()
      if let welcome { send(later: welcome.encoded(stream: 0)) } else { received.append(frame) }
    case .ping where answersPings:
      let token = try! frame.decode(Ping.self).token
      send(later: Pong(token: token).encoded(stream: 0))
    default: received.append(frame)
    }
  }

  private func send(later bytes: [UInt8]) {
    loop.execute { [self] in
      bytes.withUnsafeBytes { bytes in
        var vector = iovec(
          iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress!), iov_len: bytes.count)
        _ = withUnsafePointer(to: &vector) { stream?.write(UnsafeBufferPointer(start: $0, count: 1)) }
      }
    }
  }

  func streamWritable() {}

  func streamFailed(_ error: IOError) {
    isOver = true
  }
}

extension ScriptedBroker {
  /// Opens a subscription on its stream. Returns the client's request.
  @discardableResult
  func subscribe<S: Subscriber>(
    _ subscriber: S, to topic: RemoteTopic<TopicRecord>, from offset: UInt64 = 0, stream: UInt32 = 1
  ) throws -> Subscribe where S.Input == TopicRecord, S.Failure == ClientError {
    topic.subscribe(subscriber)
    let frame: Subscribe = try takeOnly()
    send(Subscribed(epoch: 1, nextOffset: offset, liveOffset: offset), stream)
    settle()
    return frame
  }

  /// Opens a publication on its stream, with that grant.
  func open(_ granted: UInt64, stream: UInt32 = 1) throws {
    let _: PublishOpen = try takeOnly()
    send(PublishOpened(epoch: 1, grantedThrough: granted), stream)
    settle()
  }
}
