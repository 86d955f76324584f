import Glibc
import SluiceIO
import SluiceWire

@testable import SluiceSimulation

/// A client in a simulation: it sends and reads protocol frames directly on a simulated stream, so that a test controls what is sent and when it is
/// read.
///
/// It keeps the protocol's rules; `Attacker` doesn't. Used on its loop, or by the test between two events.
final class SimulatedPeer: ByteStreamHandler, Participant {
  enum Phase: Equatable {
    case away
    case connecting
    case opening
    case open
    /// Connected, but no longer reads or writes.
    case silent
    /// Won't reconnect.
    case gone
  }

  let number: Int
  let plan: PeerPlan
  let loop: SimulatedLoop
  unowned let simulation: Simulation
  var random: SeededRandom
  private(set) var phase = Phase.away
  private(set) var welcome: Welcome?
  /// The number of connections so far.
  private(set) var incarnation = 0
  private(set) var hasGoAway = false
  private(set) var stream: (any ByteStream)?
  /// When the broker closed the last connection, and how long before that it had last received bytes from this peer.
  private(set) var closing: (time: MonotonicTime, silence: Duration)?
  /// Whether the broker may drop this connection.
  var isDisturbed = false

  private var users: [any StreamUser] = []
  /// The users of streams, by stream number less one.
  private var streams: [(any StreamUser)?] = []
  private var decoder: FrameDecoder
  private var outbox: [UInt8] = []
  private var keepalive = Keepalive(milliseconds: 0, now: 0)
  private var fault: Fault?
  private var isSettling = false

  private static let crowded = 96 << 10
  /// How long it waits for WELCOME. The broker's deadline for HELLO is far shorter, so this expires only if the end was lost.
  private static let handshakeTime = Duration.seconds(2)

  init(number: Int, plan: PeerPlan, loop: SimulatedLoop, simulation: Simulation) {
    self.number = number
    self.plan = plan
    self.loop = loop
    self.simulation = simulation
    random = SeededRandom(seed: simulation.scenario.seed &* 0x9e37_79b9 &+ UInt64(number))
    decoder = FrameDecoder(maximumFrame: Int(plan.maximumFrame), openingAt: .client)
  }

  var oracle: Oracle { simulation.oracle }
  var name: String { "peer \(number).\(incarnation)" }
  var isOpen: Bool { phase == .open && !hasGoAway }
  /// The silence after which the broker closes this peer's connection.
  var agreedKeepalive: Duration { .milliseconds(Int(welcome?.keepalive ?? 0)) }
  var isCrowded: Bool { outbox.count > Self.crowded }

  func add(_ user: any StreamUser) {
    users.append(user)
    if isOpen { user.connected(self) }
  }

  func note(_ what: @autoclosure () -> String) {
    oracle.chronicle.note(number, what())
  }

  // MARK: Connecting

  /// Call it on the loop.
  func connect() {
    guard phase == .away, !simulation.isLeaving else { return }
    phase = .connecting
    incarnation += 1
    isDisturbed = false
    let attempt = incarnation
    _ = simulation.world.network.connect(to: simulation.address, on: loop) { [weak self] result in
      guard let self, attempt == incarnation, phase == .connecting else { return }
      switch result {
      case .success(let stream): begin(stream)
      case .failure(let error):
        note("can't connect: \(error)")
        phase = .away
        comeBack()
      }
    }
  }

  private func begin(_ stream: any ByteStream) {
    note("connected, \(name)")
    phase = .opening
    self.stream = stream
    decoder = FrameDecoder(maximumFrame: Int(plan.maximumFrame), openingAt: .client)
    outbox = []
    streams = []
    fault = nil
    welcome = nil
    hasGoAway = false
    stream.start(self)
    send(Hello(maximumFrame: plan.maximumFrame, keepalive: plan.keepalive, name: name), stream: 0)
    let attempt = incarnation
    _ = loop.schedule(after: Self.handshakeTime) { [weak self] in
      guard let self, attempt == incarnation, phase == .opening else { return }
      oracle.check(
        isDisturbed || oracle.excusesTimeouts, number,
        "HELLO was answered neither by WELCOME nor by an end in \(Self.handshakeTime)")
      self.stream?.abort()
      lost("no WELCOME", inOrder: false)
    }
  }

  private func comeBack() {
    guard plan.reconnects, phase == .away, !oracle.brokerIsStopping, !simulation.isLeaving else { return }
    let delay = random.next(in: .milliseconds(1) ... .milliseconds(200))
    _ = loop.schedule(after: delay) { [weak self] in self?.connect() }
  }

  // MARK: Bytes

  func streamReadable() {
    guard let stream, phase != .silent else { return }
    let whole = simulation.readBuffer
    let buffer =
      isSettling ? whole : UnsafeMutableRawBufferPointer(rebasing: whole[..<min(plan.readSize, whole.count)])
    switch stream.read(into: buffer) {
    case .wouldBlock: break
    case .end: lost("the broker closed", inOrder: true)
    case .failed(let error): lost("\(error)", inOrder: false)
    case .bytes(let count):
      keepalive.heard(at: loop.now.nanoseconds)
      do {
        try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
          header, body throws(WireError) in
          try receive(header, body)
          return phase == .open || phase == .opening
        }
      } catch  where phase == .opening && error.code == .handshakeTimeout {
        oracle.check(isDisturbed || oracle.excusesTimeouts, number, "HELLO was sent, but: \(error)")
        lost("\(error)", inOrder: false)
      } catch {
        oracle.fail(number, "the broker broke the protocol: \(error)")
        abandon()
      }
      rest()
    }
  }

  /// Pauses reading, for a slow reader.
  private func rest() {
    guard plan.pauseOneIn > 0, !isSettling, phase == .open, random.oneIn(plan.pauseOneIn) else { return }
    stream?.readsPaused = true
    let attempt = incarnation
    _ = loop.schedule(after: random.next(in: plan.pauses)) { [weak self] in
      guard let self, attempt == incarnation, phase == .open else { return }
      stream?.readsPaused = false
    }
  }

  func streamWritable() {
    flush()
    if outbox.count <= Self.crowded / 2 { for user in users { user.roomAppeared() } }
  }

  func streamFailed(_ error: IOError) {
    lost("\(error)", inOrder: false)
  }

  func send(_ frame: some Frame, stream: UInt32) {
    guard phase == .open || phase == .opening else { return }
    frame.encode(stream: stream, into: &outbox)
    flush()
  }

  func sendPublish(_ header: PublishHeader, _ batch: [UInt8], stream: UInt32) {
    guard phase == .open else { return }
    withUnsafeTemporaryAllocation(byteCount: FrameHeader.size + PublishHeader.size, alignment: 8) { front in
      header.write(at: front.baseAddress!, stream: stream, batchLength: batch.count)
      outbox.append(contentsOf: UnsafeRawBufferPointer(front))
    }
    outbox += batch
    flush()
  }

  func send(raw bytes: [UInt8]) {
    outbox += bytes
    flush()
  }

  private func flush() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeMutableBytes { bytes in
      var vector = iovec(iov_base: bytes.baseAddress!, iov_len: bytes.count)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    // Reading reports a failure, after the bytes that arrived before it.
    if case .wrote(let count) = result, count > 0 {
      outbox.removeFirst(count)
    }
  }

  // MARK: Frames

  private func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    oracle.chronicle.mix(UInt64(header.type.rawValue) << 32 | UInt64(header.length))
    note("gets \(Self.describe(header, body))")
    if phase == .opening { return try open(ClientHandshake(hello: hello).receive(header, body)) }
    guard try header.admission(at: .client) == .take else { return }
    if let fault { oracle.fail(number, "\(header.type) after the connection's ERROR \(fault.code)") }
    switch header.type {
    case .ping: send(Pong(token: try Ping(body: body).token), stream: 0)
    case .pong: _ = try Pong(body: body)
    case .goAway: goAway(try GoAway(body: body))
    case .error where header.stream == 0: try failed(Fault(body: body))
    default:
      guard let user = self.user(of: header.stream) else {
        return oracle.fail(number, "\(header.type) on stream \(header.stream), which isn't open")
      }
      if try user.received(header, body, on: header.stream) { streams[Int(header.stream) - 1] = nil }
    }
  }

  private var hello: Hello {
    Hello(maximumFrame: plan.maximumFrame, keepalive: plan.keepalive, name: name)
  }

  private func open(_ welcome: Welcome) {
    self.welcome = welcome
    phase = .open
    keepalive = Keepalive(milliseconds: welcome.keepalive, now: loop.now.nanoseconds)
    oracle.check(
      welcome.keepalive == max(min(plan.keepalive, simulation.scenario.keepalive), 100), number,
      "a keepalive of \(welcome.keepalive) ms was agreed")
    simulation.opened()
    beat()
    for user in users { user.connected(self) }
  }

  private func goAway(_ frame: GoAway) {
    oracle.check(oracle.brokerIsStopping, number, "GOAWAY from a broker that isn't stopping")
    oracle.check(!hasGoAway, number, "GOAWAY came twice")
    hasGoAway = true
  }

  private func failed(_ fault: Fault) {
    self.fault = fault
    switch fault.code {
    case .keepaliveTimeout:
      oracle.check(
        isDisturbed || oracle.excusesTimeouts, number, "dropped as dead, though it was heard all the time")
    default: oracle.fail(number, "the connection ended with \(fault.code): \(fault.message)")
    }
  }

  /// Sends heartbeats, and checks that the broker still sends frames.
  private func beat() {
    guard let welcome, welcome.keepalive > 0 else { return }
    let attempt = incarnation
    _ = loop.schedule(after: .milliseconds(Int(welcome.keepalive) / 4)) { [weak self] in
      guard let self, attempt == incarnation, phase == .open else { return }
      switch keepalive.check(at: loop.now.nanoseconds) {
      case .expired:
        note("gives up the broker")
        stream?.abort()
        lost("silence", inOrder: false)
        return
      case .ping: send(Ping(token: UInt64(number)), stream: 0)
      case .sleep: if plan.heartbeats { send(Ping(token: 0), stream: 0) }
      }
      beat()
    }
  }

  // MARK: Streams

  private func user(of stream: UInt32) -> (any StreamUser)? {
    let index = Int(stream) - 1
    return streams.indices.contains(index) ? streams[index] : nil
  }

  /// An unused stream number, the lowest or any.
  func takeStream(for user: any StreamUser) -> UInt32 {
    let limit = Int(min(welcome?.maximumStreams ?? 1, 64))
    while streams.count < limit, streams.allSatisfy({ $0 != nil }) || random.oneIn(4) { streams.append(nil) }
    let free = streams.indices.filter { streams[$0] == nil }
    let index = random.oneIn(2) ? free[0] : free[random.next(in: 0...free.count - 1)]
    streams[index] = user
    return UInt32(index + 1)
  }

  // MARK: The end

  /// The connection was lost.
  private func lost(_ why: String, inOrder: Bool) {
    guard phase != .away, phase != .gone else { return }
    note("lost its connection: \(why)")
    let wasOpen = phase == .open || phase == .silent
    if inOrder, fault == nil, !oracle.brokerIsStopping, !isDisturbed, !oracle.excusesTimeouts {
      oracle.fail(number, "the broker closed the connection without a word")
    }
    closing = connection?.serverClosing
    leave(.away)
    if wasOpen { for user in users { user.disconnected(inOrder: inOrder && hasGoAway) } }
    comeBack()
  }

  private func leave(_ next: Phase) {
    let stream = stream
    self.stream = nil
    phase = next
    streams = []
    outbox = []
    stream?.close()
  }

  /// Closes the connection, and reconnects later if planned.
  func hangUp(_ manner: Departure) {
    guard phase == .open || phase == .opening else { return }
    note("hangs up: \(manner)")
    switch manner {
    case .close: break
    case .reset: stream?.abort()
    case .cut:
      isDisturbed = true
      connection?.cut()
      return
    case .silence:
      isDisturbed = true
      stream?.readsPaused = true
      phase = .silent
      return
    }
    let wasOpen = phase == .open
    leave(.away)
    if wasOpen { for user in users { user.disconnected(inOrder: false) } }
    comeBack()
  }

  /// Disconnects immediately and permanently.
  func abandon() {
    guard phase != .gone else { return }
    let wasOpen = phase == .open || phase == .silent
    stream?.abort()
    leave(.gone)
    if wasOpen { for user in users { user.disconnected(inOrder: false) } }
  }

  // MARK: Settling

  /// No more faults follow this call.
  func settle() {
    isSettling = true
    if phase == .silent { lost("it had fallen silent", inOrder: false) }
    stream?.readsPaused = false
    if phase == .away, plan.reconnects || incarnation == 0 { connect() }
    for user in users { user.settle() }
  }

  /// The pending work; nil if there is none.
  var unsettled: String? {
    switch phase {
    case .gone: return nil
    case .away: return plan.reconnects && !oracle.brokerIsStopping ? "\(name) is not connected" : nil
    case .connecting, .opening, .silent: return "\(name) is \(phase)"
    case .open: break
    }
    if !outbox.isEmpty { return "\(name) has \(outbox.count) bytes to send" }
    for user in users { if let what = user.unsettled { return "\(name): \(what)" } }
    return nil
  }

  var isConnected: Bool { phase == .open }

  var connection: SimulatedConnection? { stream.flatMap { simulation.connection(of: $0) } }

  func meddle() {}

  var attachments: (subscriptions: Int, publications: Int)? { nil }

  static func describe(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> String {
    let place = header.stream == 0 ? "" : " on \(header.stream)"
    let text =
      switch header.type {
      case .deliver:
        (try? DeliverHeader.decode(body)).map { "\($0.header.count) from \($0.header.firstOffset)" }
      case .subscribed: (try? Subscribed(body: body)).map { "next \($0.nextOffset) live \($0.liveOffset)" }
      case .demand: (try? Demand(body: body)).map { "through \($0.grantedThrough)" }
      case .ack: (try? Ack(body: body)).map { "through \($0.through) at \($0.lastOffset)" }
      case .live: (try? Live(body: body)).map { "at \($0.nextOffset)" }
      case .lag: (try? Lag(body: body)).map { "of \($0.missed) to \($0.nextOffset)" }
      case .error: (try? Fault(body: body)).map { "\($0.code): \($0.message)" }
      case .complete: (try? Complete(body: body)).map { "\($0.ending)" }
      default: nil as String?
      }
    return "\(header.type)\(place) \(text ?? "(\(header.length))")"
  }
}
