import CLinux
import Glibc

/// A connected socket.
///
/// Reads are level-triggered: as long as there are bytes, each turn calls the handler once. Writability is watched only after
/// a write that came short, and until a turn passes in which no write does, so that a stream that is
/// always full costs no extra system calls.
///
/// There may be tens of thousands of these: no buffers, closures or collections in here.
final class SocketStream: EventSource, ByteStream {
  let peer: SocketAddress
  private var handler: (any ByteStreamHandler)?
  private var state = State.open
  /// The end of the peer's bytes was read.
  private var peerEnded = false
  /// A write came short and `streamWritable()` wasn't called since.
  private var waitsForRoom = false
  /// Writability is being watched.
  private var watchesRoom = false

  private enum State: UInt8 {
    case open
    /// `close()` was called: what was written is being sent, what arrives is thrown away.
    case closing
    /// The connection failed, and the handler knows. Bytes that had arrived before can still be read.
    case failed
    case closed
  }

  /// The most vectors that the system takes in one call.
  private static let vectorLimit = 1_024

  /// On the loop. Takes over `descriptor`, which must be connected and non-blocking.
  init(loop: EpollLoop, descriptor: Int32, peer: SocketAddress) {
    self.peer = peer
    super.init(loop: loop, descriptor: descriptor)
    loop.addLoad(1)
  }

  deinit {
    // Only a stream that was never started, or has failed, gets here with a descriptor: others are kept by their loop.
    if descriptor >= 0 { finish() }
  }

  func start(_ handler: any ByteStreamHandler) {
    assert(loop.isAccessible, "a stream is used on its loop")
    precondition(self.handler == nil && registration == nil, "a stream is started once")
    guard state == .open else { return }
    self.handler = handler
    watchesRoom = waitsForRoom
    do throws(IOError) {
      try loop.register(self, for: interest)
    } catch {
      // The caller isn't ready for a call from here.
      _ = loop.schedule(at: loop.now) { self.fail(error) }
    }
  }

  /// From what the system knows of the connection. A system call: for descriptions, not for each write.
  var obstacle: StreamObstacle? {
    guard state == .open else { return nil }
    return Socket.obstacle(descriptor)
  }

  // MARK: Reading

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    assert(loop.isAccessible, "a stream is used on its loop")
    guard state == .open || state == .failed else { return .failed(error("read from", EBADF)) }
    if unsafe peerEnded || buffer.isEmpty { return peerEnded ? .end : .wouldBlock }
    while true {
      let count = unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count > 0 { return .bytes(count) }
      if count == 0 {
        // After this the socket stays readable.
        peerEnded = true
        updateInterest()
        return .end
      }
      let code = errno
      if code == EINTR { continue }
      if code == EAGAIN { return .wouldBlock }
      return .failed(lose("read from", code))
    }
  }

  var readsPaused = false {
    didSet {
      if readsPaused != oldValue { updateInterest() }
    }
  }

  // MARK: Writing

  func write(_ vectors: UnsafeBufferPointer<iovec>) -> WriteResult {
    assert(loop.isAccessible, "a stream is used on its loop")
    guard state == .open else { return .failed(error("write to", EPIPE)) }
    guard let base = vectors.baseAddress else { return .wrote(0) }
    var total = 0
    var first = 0
    while first < vectors.count {
      let count = min(vectors.count - first, Self.vectorLimit)
      var offered = 0
      for index in first..<first + count { unsafe offered += vectors[index].iov_len }
      let taken = unsafe send(base + first, count)
      if taken < 0 {
        let code = errno
        if code == EINTR { continue }
        guard code == EAGAIN else { return .failed(lose("write to", code)) }
        waitForRoom()
        break
      }
      total += taken
      guard taken == offered else {
        waitForRoom()
        break
      }
      first += count
    }
    return .wrote(total)
  }

  /// One call of the system. For one vector `send` does less work in the system.
  private func send(_ vectors: UnsafePointer<iovec>, _ count: Int) -> Int {
    if count == 1 {
      return unsafe Glibc.send(descriptor, vectors[0].iov_base, vectors[0].iov_len, Int32(MSG_NOSIGNAL))
    }
    var message = unsafe msghdr()
    unsafe message.msg_iov = unsafe UnsafeMutablePointer(mutating: vectors)
    unsafe message.msg_iovlen = count
    return unsafe sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
  }

  private func waitForRoom() {
    waitsForRoom = true
    if watchesRoom { return }
    watchesRoom = true
    updateInterest()
  }

  // MARK: Events

  override func ready(_ events: EpollEvents) {
    switch state {
    case .open: break
    case .closing: return throwAwayInput()
    case .failed, .closed: return
    }
    let readable = !readsPaused && !peerEnded
    if events.contains(.failed) {
      // Bytes that arrived before the failure are delivered first: they may contain the peer's reason.
      guard readable, Socket.unreadCount(descriptor) > 0 else {
        let code = Socket.takeError(descriptor)
        return fail(error("connection to", code == 0 ? ECONNRESET : code))
      }
    }
    if readable, !events.isDisjoint(with: [.readable, .hungUp, .failed]) { handler?.streamReadable() }
    if watchesRoom, events.contains(.writable), state == .open {
      if waitsForRoom {
        waitsForRoom = false
        handler?.streamWritable()
      }
      // Whether writability must be watched any longer shows when the turn's writes are done.
      loop.settle(self)
    }
  }

  override func turnSettled() {
    guard state == .open, watchesRoom, !waitsForRoom else { return }
    watchesRoom = false
    updateInterest()
  }

  private var interest: EpollEvents {
    // Without reads the socket is watched by edges: its end would otherwise be reported without end.
    var events: EpollEvents = readsPaused || peerEnded ? .edgeTriggered : .readable
    if watchesRoom { events.insert(.writable) }
    return events
  }

  private func updateInterest() {
    if state == .open { loop.changeInterest(of: self, to: interest) }
  }

  // MARK: The end

  func close() {
    assert(loop.isAccessible, "a stream is used on its loop")
    guard state == .open else {
      if state == .failed { finish() }
      return
    }
    // Closing the descriptor while the peer still sends would reset the connection, and what it hasn't read yet would be
    // lost to it. So only our half is closed, and the rest when the peer is done too.
    guard !peerEnded, !loop.hasEnded, shutdown(descriptor, Int32(SHUT_WR)) == 0 else { return finish() }
    state = .closing
    if registration == nil {
      guard (try? loop.register(self, for: .readable)) != nil else { return finish() }
    } else {
      loop.changeInterest(of: self, to: .readable)
    }
    throwAwayInput()
    if state == .closing { waitForPeer(unconfirmed: Socket.unconfirmedCount(descriptor)) }
    releaseHandler()
  }

  /// Gives up on the peer when it takes nothing any more.
  private func waitForPeer(unconfirmed: Int) {
    let loop = loop
    let registration = registration!
    _ = loop.schedule(after: loop.peerPatience) {
      guard let stream = loop.source(for: registration) as? SocketStream else { return }
      let left = Socket.unconfirmedCount(stream.descriptor)
      if left > 0, left < unconfirmed { stream.waitForPeer(unconfirmed: left) } else { stream.finish() }
    }
  }

  func abort() {
    assert(loop.isAccessible, "a stream is used on its loop")
    guard state != .closed else { return }
    Socket.resetOnClose(descriptor)
    finish()
  }

  override func loopStopped() {
    if state == .open { close() } else if state != .closing { finish() }
  }

  /// Reads and forgets what the peer still sends, for a while per turn, until its end.
  private func throwAwayInput() {
    let size = 16_384
    unsafe withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { buffer in
      for _ in 0..<16 {
        let count = unsafe recv(descriptor, buffer.baseAddress, size, 0)
        if count > 0 { continue }
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        return finish()
      }
    }
  }

  /// The connection is gone, as the handler is about to learn from a result: it hears nothing more.
  private func lose(_ action: String, _ code: Int32) -> IOError {
    if state == .open {
      state = .failed
      loop.deregister(self)
      releaseHandler()
    }
    return error(action, code)
  }

  private func fail(_ error: IOError) {
    guard state == .open else { return }
    let handler = handler
    finish()
    handler?.streamFailed(error)
  }

  private func finish() {
    guard state != .closed else { return }
    state = .closed
    closeDescriptor()
    loop.addLoad(-1)
    releaseHandler()
  }

  /// Last in whatever calls it: the handler's end may call the stream.
  private func releaseHandler() {
    let released = handler
    handler = nil
    _ = consume released
  }

  private func error(_ action: String, _ code: Int32) -> IOError {
    IOError(action: "\(action) \(peer)", code: code)
  }
}
