import Glibc
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport

/// A client in a ``BrokerScene``, which sends frames and checks every frame it receives.
final class ScenePeer: ByteStreamHandler {
  let loop: SimulatedLoop
  private(set) var stream: (any ByteStream)?
  /// The first violation in received frames.
  private(set) var violation: ProbeViolation?
  private(set) var isWelcome = false
  /// Received records, by stream.
  private(set) var records: [UInt32: [[UInt8]]] = [:]
  /// The grants of open publications, by stream.
  private(set) var granted: [UInt32: UInt64] = [:]
  /// The same in bytes of batches.
  private(set) var grantedBytes: [UInt32: UInt64] = [:]

  private let network: SimulatedNetwork
  private var decoder = FrameDecoder(maximumFrame: 1 << 20, openingAt: .client)
  private var outbox: [UInt8] = []
  private var isOver = false
  /// The highest demand sent on each stream, and the records received since it was last opened.
  private var asked: [UInt32: UInt64] = [:]
  private var delivered: [UInt32: UInt64] = [:]
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)

  init(_ world: SimulatedWorld, _ address: SocketAddress) {
    network = world.network
    loop = world.makeLoop()
    connect(to: address)
  }

  deinit {
    buffer.deallocate()
  }

  private func connect(to address: SocketAddress) {
    loop.perform {
      _ = network.connect(to: address, on: loop) { [weak self] result in
        guard let self, !isOver, case .success(let stream) = result else { return }
        self.stream = stream
        stream.start(self)
        streamWritable()
      }
    }
  }

  // MARK: Out

  func send(_ bytes: [UInt8]) {
    note(bytes)
    outbox += bytes
    loop.perform { streamWritable() }
  }

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeBytes { stream.write($0) }
    if case .wrote(let count) = result { outbox.removeFirst(count) }
  }

  func pauseReading(_ isPaused: Bool) {
    loop.perform { stream?.readsPaused = isPaused }
  }

  func leave(abruptly: Bool = false) {
    isOver = true
    loop.perform {
      if abruptly { stream?.abort() } else { stream?.close() }
    }
    stream = nil
  }

  /// Records the demand that a frame grants.
  private func note(_ frame: [UInt8]) {
    frame.withUnsafeBytes { frame in
      guard frame.count >= FrameHeader.size else { return }
      let header = FrameHeader(at: frame.baseAddress!)
      let body = UnsafeRawBufferPointer(rebasing: frame[FrameHeader.size...])
      let through: UInt64? =
        switch header.type {
        case .subscribe: try? Subscribe(body: body).grantedThrough
        case .joinGroup: try? JoinGroup(body: body).grantedThrough
        case .subscribePattern: try? SubscribePattern(body: body).grantedThrough
        case .demand: try? Demand(body: body).grantedThrough
        default: nil
        }
      if let through { asked[header.stream] = max(asked[header.stream] ?? 0, through) }
    }
  }

  // MARK: In

  func streamReadable() {
    guard let stream else { return }
    switch stream.read(into: buffer) {
    case .wouldBlock: break
    case .end, .failed:
      isOver = true
      self.stream = nil
      stream.close()
    case .bytes(let count):
      do {
        try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          try receive(header, body)
          return true
        }
      } catch {
        violation = violation ?? ProbeViolation("the broker sends what it mustn't: \(error)")
      }
    }
  }

  func streamFailed(_ error: IOError) {
    isOver = true
    stream = nil
  }

  private func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    guard try header.admission(at: .client) == .take else {
      throw WireError(.unsupportedFrame, "\(header.type) isn't known")
    }
    let stream = header.stream
    switch header.type {
    case .welcome:
      _ = try Welcome(body: body)
      isWelcome = true
    case .deliver: try deliver(stream, body)
    case .subscribed:
      _ = try Subscribed(body: body)
      delivered[stream] = 0
      records[stream] = []
    case .publishOpened:
      let frame = try PublishOpened(body: body)
      (granted[stream], grantedBytes[stream]) = (frame.grantedThrough, frame.bytesThrough)
    case .demand:
      let frame = try Demand(body: body)
      (granted[stream], grantedBytes[stream]) = (frame.grantedThrough, frame.bytesThrough)
    case .ping: send(Pong(token: try Ping(body: body).token).encoded(stream: 0))
    default: try check(header, body)
    }
  }

  private func deliver(_ stream: UInt32, _ body: UnsafeRawBufferPointer) throws(WireError) {
    let (header, batch) = try DeliverHeader.decode(body)
    guard !header.firstOffset.addingReportingOverflow(UInt64(header.count)).overflow, header.count > 0 else {
      throw WireError(.malformedBatch, "\(header.count) records come at \(header.firstOffset)")
    }
    delivered[stream, default: 0] += UInt64(header.count)
    guard delivered[stream] ?? 0 <= asked[stream] ?? 0 else {
      throw WireError(
        .demandExceeded,
        "\(delivered[stream] ?? 0) records come on \(stream), where \(asked[stream] ?? 0) were asked for")
    }
    var iterator = BatchIterator(batch, count: header.count, time: 0)
    while let record = try iterator.next() {
      if record.isAttributed { _ = try RecordAttributes(record.body) }
      records[stream, default: []].append(Array(record.body))
    }
  }

  private func check(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    for type in WireProbe.frameTypes where type.type == header.type { _ = try type.init(body: body) }
  }
}
