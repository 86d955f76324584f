import Glibc
import SluiceIO
import SluiceWire

/// A connection of this node to another one, on behalf of one identity. It relays streams of several clients. Belongs to its loop.
///
/// Lives as long as the connection; ``NodeLinks`` creates the next one.
final class NodeLink: ByteStreamHandler {
  /// Bytes waiting to be written above which producers get no more demand.
  static let congested = 1 << 20
  /// The silence after which the other node counts as lost, in milliseconds.
  static let keepalive: UInt32 = 5_000

  let node: RemoteNode
  /// Its number among the broker's connections.
  let id: UInt64
  private let loop: any EventLoop
  private unowned let owner: NodeLinks
  private let meter: LinkMeter
  private let handshake: ClientHandshake
  private var session = LinkSession()
  private var attempt: (any ConnectionAttempt)?
  private var stream: (any ByteStream)?
  private var decoder: FrameDecoder
  private var beat: Keepalive
  private var timer: TimerToken?
  private var output: [UInt8] = []
  /// Bytes of ``output`` that were written.
  private var written = 0
  private var isBlocked = false
  /// Whether it is in the relay's list of links to serve at the end of the turn.
  private var isDue = false
  private var isClosed = false
  /// Whether the other node has answered the handshake.
  private var isOpen = false
  /// The number of streams when they were last counted in the meter.
  private var counted = 0
  /// The buffered bytes when they were last counted.
  private(set) var buffered = 0
  /// Publications that get no more demand until there is less to write.
  private var held: [RelayedPublication] = []
  /// When a stream was last open.
  private(set) var lastUse: MonotonicTime
  /// The longest frame and the longest record that the other node accepts, in bytes.
  private(set) var maximumFrame = 0
  private(set) var maximumRecord = 0

  init(
    to node: RemoteNode, id: UInt64, hello: Hello, meter: LinkMeter, for owner: NodeLinks,
    on loop: any EventLoop
  ) {
    self.node = node
    self.id = id
    self.meter = meter
    self.loop = loop
    self.owner = owner
    handshake = ClientHandshake(hello: hello)
    decoder = FrameDecoder(maximumFrame: Int(hello.maximumFrame), openingAt: .client)
    beat = Keepalive(milliseconds: Self.keepalive, now: loop.now.nanoseconds)
    lastUse = loop.now
  }

  // MARK: Opening

  /// Connects within a time limit that includes the handshake.
  func connect(to address: SocketAddress, over network: any Network, within limit: Duration) {
    timer = loop.schedule(after: limit) { [weak self] in
      self?.close(because: "it doesn't answer within \(limit)")
    }
    attempt = network.connect(to: address, on: loop) { [weak self] result in
      guard let self, !isClosed else {
        if case .success(let stream) = result { stream.abort() }
        return
      }
      attempt = nil
      switch result {
      case .failure(let error): close(because: error.description)
      case .success(let stream):
        self.stream = stream
        stream.start(self)
        send(handshake.hello, stream: 0)
      }
    }
  }

  private func opened(_ welcome: Welcome) {
    isOpen = true
    meter.add(.opened)
    meter.add(.connections)
    loop.cancel(&timer)
    maximumFrame = Int(welcome.maximumFrame)
    maximumRecord = Int(welcome.maximumRecord)
    beat = Keepalive(milliseconds: welcome.keepalive, now: loop.now.nanoseconds)
    watch()
    owner.opened(self)
  }

  // MARK: Streams

  var hasRoom: Bool { session.hasRoom && !isClosed }
  var isUsed: Bool { session.count > 0 }

  /// Opens a stream; the caller sends the frame that opens it at the other node.
  ///
  /// - Returns: its number; nil without room.
  func open(_ stream: any LinkedStream) -> UInt32? {
    defer { countStreams() }
    return session.open(stream)
  }

  /// Cancels a stream. It gets no more frames.
  func cancel(_ number: UInt32) {
    if isClosed { return }
    session.cancel(number)
    send(Cancel(), stream: number)
  }

  /// Stops passing frames to a stream for which CANCEL was sent.
  func leaveCancelled(_ number: UInt32) {
    if !isClosed { session.cancel(number) }
  }

  /// Stops passing frames to a stream for which COMPLETE was sent.
  func leaveCompleting(_ number: UInt32) {
    if !isClosed { session.leaveCompleting(number) }
  }

  /// Keeps the number of a stream in use after the owner has sent the last frame.
  func keep(_ number: UInt32) { session.keep(number) }

  func release(_ number: UInt32) {
    if isClosed { return }
    session.release(number)
    countStreams()
    lastUse = loop.now
  }

  private func countStreams() {
    guard session.count != counted else { return }
    meter.add(.streams, session.count - counted)
    counted = session.count
  }

  // MARK: Frames out

  func send(_ frame: some Frame, stream: UInt32) {
    if isClosed { return }
    frame.encode(stream: stream, into: &output)
    makeReady()
  }

  func publish(from sequence: UInt64, _ count: UInt32, _ batch: UnsafeRawBufferPointer, stream: UInt32) {
    if isClosed { return }
    unsafe withUnsafeTemporaryAllocation(byteCount: FrameHeader.size + PublishHeader.size, alignment: 4) {
      front in
      unsafe PublishHeader(firstSequence: sequence, count: count)
        .write(at: front.baseAddress!, stream: stream, batchLength: batch.count)
      unsafe output.append(contentsOf: UnsafeRawBufferPointer(front))
    }
    unsafe output.append(contentsOf: batch)
    meter.add(.recordsSent, Int(count))
    makeReady()
  }

  var isCongested: Bool { output.count - written > Self.congested }

  /// Calls a publication when the link is no longer congested.
  func notify(_ publication: RelayedPublication) { held.append(publication) }

  private func makeReady() {
    guard !isDue else { return }
    isDue = true
    owner.makeReady(self)
  }

  /// Writes pending output, as much as the transport accepts, and counts the rest. At the end of a turn.
  func flush() {
    isDue = false
    if !isBlocked { write() }
    countBuffered()
  }

  /// Counts the buffered bytes of both directions.
  private func countBuffered() {
    let count = isClosed ? 0 : output.count - written + decoder.heldBytes + (stream?.heldBytes ?? 0)
    if count != buffered { owner.buffered(count - buffered) }
    buffered = count
  }

  private func write() {
    guard let stream, !isClosed else { return }
    while written < output.count {
      let result = unsafe output.withUnsafeBytes {
        unsafe stream.write(UnsafeRawBufferPointer(rebasing: $0[written...]))
      }
      guard case .wrote(let count) = result else {
        if case .failed(let error) = result { close(because: error.description) }
        return
      }
      written += count
      meter.add(.bytesSent, count)
      isBlocked = written < output.count
      if isBlocked { break }
    }
    if written == output.count {
      output.removeAll(keepingCapacity: output.capacity <= 64 << 10)
      written = 0
    } else if written > max(1 << 20, output.count / 2) {
      output.removeFirst(written)
      written = 0
    }
    guard !isCongested, !held.isEmpty else { return }
    let waiting = held
    held = []
    for publication in waiting { publication.linkDrained() }
  }

  // MARK: Bytes in

  func streamReadable() {
    guard let stream else { return }
    let buffer = unsafe owner.readBuffer
    switch unsafe stream.read(into: buffer) {
    case .wouldBlock: break
    case .end: close(because: "it has closed the connection")
    case .failed(let error): close(because: error.description)
    case .bytes(let count):
      beat.heard(at: loop.now.nanoseconds)
      meter.add(.bytesReceived, count)
      do {
        try unsafe decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          try unsafe take(header, body)
          return !isClosed
        }
      } catch {
        send(Fault(error), stream: 0)
        flush()
        return close(because: "it violates the protocol: \(error.message)")
      }
      if decoder.heldBytes != 0 || buffered != 0 || stream.heldBytes != 0 { makeReady() }
    }
  }

  private func take(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    switch try unsafe session.receive(header, body, handshake) {
    case .none: countStreams()
    case .opened(let welcome): opened(welcome)
    case .answerPing(let token): send(Pong(token: token), stream: 0)
    case .leaving: owner.leaves(self)
    case .failed(let fault): close(because: fault.message)
    case .stream(let stream):
      if header.type == .deliver {
        meter.add(.recordsReceived, Int(try unsafe DeliverHeader.decode(body).header.count))
      }
      if try unsafe stream.receive(header.type, body) { release(header.stream) }
    }
  }

  func streamWritable() {
    isBlocked = false
    flush()
  }

  func streamHoldsOther() { makeReady() }

  func streamFailed(_ error: IOError) { close(because: error.description) }

  private func watch() {
    switch beat.check(at: loop.now.nanoseconds) {
    case .expired:
      // The pending output is for streams that clients open again elsewhere. It must not arrive after them when the network has recovered, so it is dropped.
      stream?.abort()
      stream = nil
      close(because: "nothing was heard from it for \(Self.keepalive) ms")
    case .ping(let next):
      send(Ping(token: 0), stream: 0)
      sleep(until: next)
    case .sleep(let time): sleep(until: time)
    }
  }

  private func sleep(until time: UInt64) {
    guard time != .max, !isClosed else { return }
    timer = loop.schedule(at: MonotonicTime(nanoseconds: time)) { [weak self] in self?.watch() }
  }

  // MARK: The end

  /// Closes the connection and ends its streams. Clients open them again.
  ///
  /// - Parameter isWanted: whether this isn't a failure.
  func close(because reason: String, isWanted: Bool = false) {
    guard !isClosed else { return }
    isClosed = true
    if isOpen { meter.add(.connections, -1) }
    if !isWanted { meter.add(isOpen ? .lost : .failed) }
    loop.cancel(&timer)
    attempt?.abandon()
    attempt = nil
    stream?.close()
    stream = nil
    let ended = session.numbered
    session = LinkSession()
    countStreams()
    (output, held, written) = ([], [], 0)
    countBuffered()
    owner.closed(self, because: reason, isWanted: isWanted)
    for (_, stream) in ended { stream.lost(.lostNode(node, serving: stream.topic, because: reason)) }
  }

  /// Ends the streams for which `isGone` returns true, because another node now serves their topics.
  func end(where isGone: (String) -> Bool) {
    for (_, stream) in session.numbered where isGone(stream.topic) {
      stream.leaveOwner()
      stream.lost(.topicMoved(stream.topic))
    }
  }
}
