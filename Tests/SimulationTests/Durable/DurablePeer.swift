import Glibc
import SluiceIO
import SluiceSimulation
import SluiceWire

/// An object with a stream of a ``DurablePeer``.
protocol DurableUser: AnyObject {
  func connected()
  /// Returns true if the stream has ended.
  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool
  func disconnected()
  /// The pending work; nil if there is none.
  var unsettled: String? { get }
}

/// A client that exchanges protocol frames for a single user, and always reconnects.
final class DurablePeer: ByteStreamHandler {
  let number: Int
  let loop: SimulatedLoop
  var random: SeededRandom
  unowned let oracle: DurableOracle
  weak var user: (any DurableUser)?
  private let network: SimulatedNetwork
  private let address: SocketAddress
  private(set) var stream: (any ByteStream)?
  private(set) var isOpen = false
  /// The number of connections so far.
  private(set) var incarnation = 0
  private var isConnecting = false
  private var isGone = false
  private var decoder = FrameDecoder(maximumFrame: frame, openingAt: .client)
  private var outbox: [UInt8] = []
  private var keepalive = Keepalive(milliseconds: 0, now: 0)
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)

  private static let frame = 1 << 20
  private static let silence: UInt32 = 1_000

  init(
    _ number: Int, seed: UInt64, loop: SimulatedLoop, network: SimulatedNetwork, address: SocketAddress,
    oracle: DurableOracle
  ) {
    self.number = number
    self.loop = loop
    self.network = network
    self.address = address
    self.oracle = oracle
    random = SeededRandom(seed: seed &* 0x9e37_79b9 &+ UInt64(number))
  }

  deinit {
    buffer.deallocate()
  }

  func note(_ what: @autoclosure () -> String) { oracle.note("peer \(number): \(what())") }

  // MARK: Connecting

  /// Call it on the loop.
  func connect() {
    guard stream == nil, !isConnecting, !isGone else { return }
    isConnecting = true
    _ = network.connect(to: address, on: loop) { [weak self] result in
      guard let self else { return }
      isConnecting = false
      switch result {
      case .success(let stream): isGone ? stream.close() : begin(stream)
      case .failure: comeBack()
      }
    }
  }

  private func begin(_ stream: any ByteStream) {
    incarnation += 1
    self.stream = stream
    decoder = FrameDecoder(maximumFrame: Self.frame, openingAt: .client)
    outbox = []
    keepalive = Keepalive(milliseconds: Self.silence, now: loop.now.nanoseconds)
    stream.start(self)
    send(hello, stream: 0)
    beat()
  }

  private var hello: Hello {
    Hello(maximumFrame: UInt32(Self.frame), keepalive: Self.silence, name: "peer \(number).\(incarnation)")
  }

  private func comeBack() {
    guard !isGone else { return }
    let delay = random.next(in: .milliseconds(1) ... .milliseconds(150))
    _ = loop.schedule(after: delay) { [weak self] in self?.connect() }
  }

  private func beat() {
    let attempt = incarnation
    _ = loop.schedule(after: .milliseconds(Int(Self.silence) / 4)) { [weak self] in
      guard let self, attempt == incarnation, stream != nil else { return }
      switch keepalive.check(at: loop.now.nanoseconds) {
      case .expired: return lost("silence")
      case .ping, .sleep: if isOpen { send(Ping(token: 1), stream: 0) }
      }
      beat()
    }
  }

  private func lost(_ why: String) {
    guard let stream else { return }
    note("lost its connection: \(why)")
    let wasOpen = isOpen
    self.stream = nil
    isOpen = false
    stream.close()
    if wasOpen { user?.disconnected() }
    comeBack()
  }

  /// Disconnects permanently.
  func leave() {
    isGone = true
    stream?.close()
    stream = nil
    isOpen = false
  }

  /// Runs `body` later, unless the connection has been replaced by then.
  func later(within delay: Duration, _ body: @escaping () -> Void) {
    let attempt = incarnation
    _ = loop.schedule(after: random.next(in: .zero...delay)) { [weak self] in
      guard let self, isOpen, attempt == incarnation else { return }
      body()
    }
  }

  // MARK: Bytes

  func streamReadable() {
    guard let stream else { return }
    switch stream.read(into: buffer) {
    case .wouldBlock: break
    case .end: lost("the broker closed")
    case .failed(let error): lost("\(error)")
    case .bytes(let count):
      keepalive.heard(at: loop.now.nanoseconds)
      do {
        try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          try receive(header, body)
          return self.stream === stream
        }
      } catch {
        oracle.fail("peer \(number): the broker broke the protocol: \(error)")
        leave()
      }
    }
  }

  private func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    guard isOpen else {
      _ = try ClientHandshake(hello: hello).receive(header, body)
      isOpen = true
      user?.connected()
      return
    }
    guard try header.admission(at: .client) == .take else { return }
    switch header.type {
    case .ping: send(Pong(token: try Ping(body: body).token), stream: 0)
    case .pong, .goAway: break
    case .error where header.stream == 0:
      let fault = try Fault(body: body)
      oracle.check(
        fault.code == .keepaliveTimeout || fault.code == .shuttingDown,
        "peer \(number)'s connection ended with \(fault.code): \(fault.message)")
    default:
      note("gets \(SimulatedPeer.describe(header, body))")
      _ = try user?.received(header, body)
    }
  }

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeMutableBytes { bytes in
      var vector = iovec(iov_base: bytes.baseAddress!, iov_len: bytes.count)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    // A failure is reported by reading.
    if case .wrote(let count) = result { outbox.removeFirst(count) }
  }

  func streamFailed(_ error: IOError) { lost("\(error)") }

  func send(_ frame: some Frame, stream: UInt32) {
    frame.encode(stream: stream, into: &outbox)
    streamWritable()
  }

  func send(_ header: PublishHeader, _ batch: [UInt8], stream: UInt32) {
    withUnsafeTemporaryAllocation(byteCount: FrameHeader.size + PublishHeader.size, alignment: 8) { front in
      header.write(at: front.baseAddress!, stream: stream, batchLength: batch.count)
      outbox.append(contentsOf: UnsafeRawBufferPointer(front))
    }
    outbox += batch
    streamWritable()
  }
}
