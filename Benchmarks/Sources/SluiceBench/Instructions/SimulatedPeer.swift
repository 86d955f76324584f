import Glibc
import SluiceIO
import SluiceSimulation
import SluiceWire

/// One end of a connection in a simulated world, which sends and receives frames on its loop. Used only by the measuring thread.
class SimulatedPeer: ByteStreamHandler {
  // Used only by the measuring thread.
  private nonisolated(unsafe) static let chunk = UnsafeMutableRawBufferPointer.allocate(
    byteCount: 1 << 20, alignment: 4096)

  private var stream: (any ByteStream)?
  private var output: [UInt8] = []
  private var written = 0
  private var decoder = FrameDecoder(maximumFrame: 16 << 20)
  private(set) var error: (any Error)?
  private(set) var isOpen = false

  /// The bytes to send after HELLO, once WELCOME has arrived.
  var opening: [UInt8] { [] }

  func connect(_ world: SimulatedWorld, on loop: SimulatedLoop, to address: SocketAddress) {
    loop.perform {
      _ = world.network.connect(to: address, on: loop) { [self] result in
        switch result {
        case .failure(let error): self.error = error
        case .success(let stream):
          self.stream = stream
          stream.start(self)
          send(Hello(maximumFrame: 16 << 20, keepalive: 0, name: "fixed").encoded(stream: 0))
        }
      }
    }
  }

  func send(_ bytes: [UInt8]) {
    output += bytes
    write()
  }

  /// Whether bytes wait for room in the connection.
  var isBlocked: Bool { written < output.count }

  func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws {}

  func roomCame() {}

  private func write() {
    guard let stream, isBlocked else { return }
    output.withUnsafeMutableBytes { bytes in
      var vector = iovec(iov_base: bytes.baseAddress! + written, iov_len: bytes.count - written)
      withUnsafePointer(to: &vector) {
        switch stream.write(UnsafeBufferPointer(start: $0, count: 1)) {
        case .wrote(let count): written += count
        case .failed(let error): self.error = error
        }
      }
    }
    guard !isBlocked else { return }
    output.removeAll(keepingCapacity: true)
    written = 0
  }

  // MARK: ByteStreamHandler

  func streamReadable() {
    guard let stream else { return }
    switch stream.read(into: Self.chunk) {
    case .bytes(let count):
      do {
        try decoder.decode(UnsafeRawBufferPointer(rebasing: Self.chunk[..<count])) { header, body in
          do { try take(header, body) } catch { self.error = error }
          return self.error == nil
        }
      } catch {
        self.error = error
      }
    case .wouldBlock: break
    case .end: error = BenchError("the broker closed the connection")
    case .failed(let error): self.error = error
    }
  }

  private func take(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws {
    switch header.type {
    case .welcome: send(opening)
    case .error: throw BenchError("the broker reported: \(try Fault(body: body).message)")
    case .subscribed, .publishOpened:
      isOpen = true
      fallthrough
    default:
      try receive(header, body)
    }
  }

  func streamWritable() {
    write()
    if !isBlocked { roomCame() }
  }

  func streamFailed(_ error: IOError) {
    self.error = error
  }
}

/// Publishes the requested number of batches, within the broker's grant.
final class SimulatedProducer: SimulatedPeer {
  private let topic: String
  private let batch: FixedBatch
  private var next: UInt64 = 0
  private var target: UInt64 = 0
  private var granted: (records: UInt64, bytes: UInt64) = (0, 0)
  private var frame: [UInt8]

  init(topic: String, batch: FixedBatch) {
    self.topic = topic
    self.batch = batch
    frame = batch.publication(sequence: 0)
  }

  override var opening: [UInt8] {
    PublishOpen(topic: topic, acknowledgement: .received).encoded(stream: 1)
  }

  /// On its loop.
  func publish(_ batches: Int) {
    target += UInt64(batches * batch.count)
    pump()
  }

  private func pump() {
    while next < target, !isBlocked, next + UInt64(batch.count) <= granted.records,
      (next / UInt64(batch.count) + 1) * UInt64(batch.bytes.count) <= granted.bytes
    {
      frame.withUnsafeMutableBytes {
        PublishHeader(firstSequence: next, count: UInt32(batch.count))
          .write(at: $0.baseAddress!, stream: 1, batchLength: batch.bytes.count)
      }
      next += UInt64(batch.count)
      send(frame)
    }
  }

  override func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws {
    switch header.type {
    case .publishOpened:
      let opened = try PublishOpened(body: body)
      granted = (opened.grantedThrough, opened.bytesThrough)
    case .demand:
      let demand = try Demand(body: body)
      granted = (demand.grantedThrough, demand.bytesThrough)
    default: return
    }
    pump()
  }

  override func roomCame() {
    pump()
  }
}

/// Receives records, and counts them.
final class SimulatedSubscriber: SimulatedPeer {
  private let topic: String
  /// Nil for unlimited demand; otherwise the number of records to request ahead.
  private let demand: UInt64?
  private var granted: UInt64 = 0
  private(set) var received: UInt64 = 0

  init(topic: String, demand: UInt64? = nil) {
    self.topic = topic
    self.demand = demand
    granted = demand ?? .max
  }

  override var opening: [UInt8] {
    Subscribe(topic: topic, start: .new, lag: .fail, grantedThrough: granted).encoded(stream: 1)
  }

  override func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws {
    guard header.type == .deliver else { return }
    received += UInt64(try DeliverHeader.decode(body).header.count)
    guard let demand, granted - received <= demand / 2 else { return }
    granted = received + demand
    send(Demand(grantedThrough: granted).encoded(stream: 1))
  }
}
