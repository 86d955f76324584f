import Glibc
import SluiceIO

/// One side of a simulated connection.
///
/// Unlike a socket it isn't closed when it is let go: its connection keeps it.
final class SimulatedStream: ByteStream {
  let loop: SimulatedLoop
  let peer: SocketAddress
  let name: String
  private let scheduler: SimulatedScheduler
  private let settings: SimulatedSettings
  private let incoming: SimulatedPipe
  private let outgoing: SimulatedPipe
  private var handler: (any ByteStreamHandler)?
  private var state = State.open
  private var peerEnded = false
  private var waitsForRoom = false
  private var hasNewsOfRoom = false
  /// When bytes last arrived that could still be read here, and when this side was closed.
  private(set) var lastHeard: MonotonicTime?
  private(set) var closedAt: MonotonicTime?
  /// On the loop's list for its next turn.
  var isQueued = false

  private enum State {
    case open
    /// Closed here; what still arrives is thrown away.
    case closing
    /// Failed, and the handler knows.
    case failed
    /// Arriving bytes are answered with a reset.
    case gone
  }

  /// How long a closed stream waits for the peer's end.
  private static let closingTime = Duration.seconds(2)

  init(
    name: String, loop: SimulatedLoop, peer: SocketAddress, incoming: SimulatedPipe, outgoing: SimulatedPipe,
    scheduler: SimulatedScheduler, settings: SimulatedSettings
  ) {
    self.name = name
    self.loop = loop
    self.peer = peer
    self.incoming = incoming
    self.outgoing = outgoing
    self.scheduler = scheduler
    self.settings = settings
    incoming.receiver = self
    outgoing.sender = self
    loop.streamCount += 1
  }

  // MARK: ByteStream

  func start(_ handler: any ByteStreamHandler) {
    precondition(loop.isCurrent, "a stream is used on its loop")
    precondition(self.handler == nil, "a stream is started once")
    guard state == .open else { return }
    self.handler = handler
    announce()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    precondition(loop.isCurrent, "a stream is used on its loop")
    guard state == .open || state == .failed else { return .failed(error("read from", EBADF)) }
    if unsafe peerEnded || buffer.isEmpty { return peerEnded ? .end : .wouldBlock }
    if incoming.unread > 0 {
      let count = unsafe incoming.read(into: buffer)
      scheduler.note("\(name): reads \(count)")
      return .bytes(count)
    }
    if incoming.wasReset { return .failed(lose("read from", ECONNRESET)) }
    if incoming.hasEnded {
      peerEnded = true
      return .end
    }
    return .wouldBlock
  }

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    precondition(loop.isCurrent, "a stream is used on its loop")
    guard state == .open else { return .failed(error("write to", EPIPE)) }
    if incoming.wasReset { return .failed(lose("write to", ECONNRESET)) }
    let offered = unsafe vectors.reduce(0) { unsafe $0 + $1.iov_len }
    let room = outgoing.room
    var count = min(offered, room)
    if count > 0, scheduler.random.oneIn(settings.conditions.shortWriteOneIn) {
      count = scheduler.random.next(in: 0...count)
    }
    if count > 0 { unsafe outgoing.send(Self.gather(vectors, count)) }
    scheduler.note("\(name): writes \(count) of \(offered)")
    if count < offered {
      waitsForRoom = true
      hasNewsOfRoom = false
      // A write that came short by chance: there is room, and no event will report it.
      if count < room {
        let delay = scheduler.random.next(in: settings.conditions.latency)
        scheduler.schedule(after: delay) { [weak self] in self?.roomAppeared() }
      }
    }
    return .wrote(count)
  }

  private static func gather(_ vectors: UnsafeBufferPointer<iovec>, _ count: Int) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      for index in 0..<vectors.count {
        let vector = unsafe vectors[index]
        guard unsafe filled < count && vector.iov_len > 0 else { continue }
        let length = unsafe min(vector.iov_len, count - filled)
        unsafe (UnsafeMutableRawPointer(buffer.baseAddress!) + filled)
          .copyMemory(from: vector.iov_base, byteCount: length)
        filled += length
      }
    }
  }

  var readsPaused = false {
    didSet { announce() }
  }

  func close() {
    precondition(loop.isCurrent, "a stream is used on its loop")
    endHere()
  }

  func abort() {
    precondition(loop.isCurrent, "a stream is used on its loop")
    guard state != .gone else { return }
    reset()
  }

  // MARK: What the pipes report

  /// Whether bytes that arrive can still be read by a handler.
  var takesBytes: Bool { state == .open || state == .failed }

  func somethingArrived() {
    switch state {
    case .open:
      lastHeard = scheduler.now
      announce()
    case .closing: if incoming.hasEnded || incoming.wasReset { leave() }
    case .failed, .gone: break
    }
  }

  /// Bytes for a stream that was closed. It discards them for a while before it resets the connection.
  func bytesArrivedTooLate() {
    if state == .gone, !incoming.wasReset { outgoing.sendReset() }
  }

  func roomAppeared() {
    guard waitsForRoom, outgoing.room > 0 else { return }
    hasNewsOfRoom = true
    announce()
  }

  // MARK: Events

  /// Whether a turn has something to hand out.
  var hasEvents: Bool {
    guard state == .open, handler != nil else { return false }
    return isReadable || incoming.wasReset || hasNewsOfRoom
  }

  private var isReadable: Bool {
    !readsPaused && !peerEnded && (incoming.unread > 0 || incoming.hasEnded)
  }

  private func announce() {
    if hasEvents { loop.enqueue(self) }
  }

  /// In the loop's turn.
  func handOutEvents() {
    guard hasEvents else { return }
    if incoming.wasReset, !isReadable || incoming.unread == 0 {
      let handler = handler
      leave()
      handler?.streamFailed(error("connection to", ECONNRESET))
      return
    }
    if isReadable { handler?.streamReadable() }
    if hasNewsOfRoom, state == .open {
      waitsForRoom = false
      hasNewsOfRoom = false
      handler?.streamWritable()
    }
  }

  // MARK: The end

  private func endHere() {
    switch state {
    case .open: break
    case .failed: return leave()
    case .closing, .gone: return
    }
    if settings.conditions.resetsWhenClosedUnread, incoming.unread > 0 { return reset() }
    scheduler.note("\(name): closes")
    closedAt = scheduler.now
    outgoing.sendEnd()
    incoming.discard()
    if peerEnded || incoming.hasEnded { return leave() }
    state = .closing
    scheduler.schedule(after: Self.closingTime) { [weak self] in
      if let self, state == .closing { leave() }
    }
    releaseHandler()
  }

  private func reset() {
    scheduler.note("\(name): aborts")
    outgoing.sendReset()
    leave()
  }

  /// The process that has this side is killed; the system closes its connections.
  func crash() {
    if state == .open, incoming.unread > 0 { reset() } else { endHere() }
  }

  private func lose(_ action: String, _ code: Int32) -> IOError {
    if state == .open {
      state = .failed
      releaseHandler()
    }
    return error(action, code)
  }

  private func leave() {
    guard state != .gone else { return }
    state = .gone
    loop.streamCount -= 1
    releaseHandler()
  }

  private func releaseHandler() {
    let released = handler
    handler = nil
    _ = consume released
  }

  /// Nothing of this side is left.
  var isGone: Bool { state == .gone }

  private func error(_ action: String, _ code: Int32) -> IOError {
    IOError(action: "\(action) \(peer)", code: code)
  }
}
