import Glibc
import SluiceIO
import SluiceSimulation
import SluiceWire

/// A client that breaks the rules on purpose, and checks that the broker responds as specified.
final class Attacker: ByteStreamHandler {
  let attack: Attack
  let number: Int
  let topic: String
  let loop: SimulatedLoop
  private unowned let simulation: Simulation
  private(set) var stream: (any ByteStream)?
  private var decoder = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)
  private var outbox: [UInt8] = []
  private var welcome: Welcome?
  private var answers = 0
  private var hasExpectedError = false
  private var isProbing = false
  private var storm: Storm?
  private(set) var isDone = false
  /// Whether the network may have caused its result.
  var isDisturbed = false

  private static let probe: UInt64 = 0xF00D
  /// Longer than any deadline of the broker, and than a storm.
  private static let patience = Duration.seconds(30)

  init(_ attack: Attack, number: Int, topic: String, loop: SimulatedLoop, simulation: Simulation) {
    self.attack = attack
    self.number = number
    self.topic = topic
    self.loop = loop
    self.simulation = simulation
  }

  private var oracle: Oracle { simulation.oracle }

  private func note(_ what: @autoclosure () -> String) {
    oracle.chronicle.note(number, what())
  }

  /// Call it on the loop.
  func connect() {
    note("attacks: \(attack.kind)")
    _ = simulation.world.network.connect(to: simulation.address, on: loop) { [weak self] result in
      guard let self, !isDone else { return }
      switch result {
      case .success(let stream):
        self.stream = stream
        stream.start(self)
        limitWaiting(stream)
        if attack.beginsWithHandshake { send(attack.hello().encoded(stream: 0)) } else { strike() }
      case .failure: isDone = true
      }
    }
  }

  /// Gives up if neither a reply nor the end of the connection arrives. Both may be lost if the broker is killed during a network cut.
  private func limitWaiting(_ stream: any ByteStream) {
    _ = loop.schedule(after: Self.patience) { [weak self] in
      guard let self, !isDone, stream === self.stream else { return }
      oracle.check(
        isDisturbed || oracle.excusesTimeouts, number,
        "\(attack.kind): neither an answer nor an end came in \(Self.patience)")
      stream.abort()
      leave()
    }
  }

  private func strike() {
    if case .storm = attack.kind {
      storm = storm ?? Storm(seed: attack.seed, topic: topic)
      return blow(stream)
    }
    if attack.doesNotRead {
      stream?.readsPaused = true
      _ = loop.schedule(after: .milliseconds(200)) { [weak self] in self?.stream?.readsPaused = false }
    }
    send(attack.bytes(welcome, topic: topic))
    guard case .harmless = attack.expectation else { return }
    probe()
  }

  /// Sends the storm's next frames, unless the connection has been replaced.
  private func blow(_ stream: (any ByteStream)?) {
    guard !isDone, let stream, stream === self.stream else { return }
    guard let gust = storm?.next() else { return probe() }
    send(gust.frames)
    stream.readsPaused = gust.stopsReading
    _ = loop.schedule(after: gust.pause) { [weak self] in
      guard let self, stream === self.stream else { return }
      stream.readsPaused = false
      blow(stream)
    }
  }

  /// Continues a storm on another connection. Returns false if it has ended.
  private func comeBack() -> Bool {
    guard storm?.startOver() == true, !oracle.brokerIsStopping else { return false }
    stream?.close()
    stream = nil
    decoder = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)
    outbox = []
    hasExpectedError = false
    connect()
    return true
  }

  /// Checks that the connection is still open.
  private func probe() {
    isProbing = true
    send(Ping(token: Self.probe).encoded(stream: 0))
  }

  private func send(_ bytes: [UInt8]) {
    outbox += bytes
    streamWritable()
  }

  // MARK: Bytes

  func streamWritable() {
    guard !outbox.isEmpty, let stream else { return }
    let result = outbox.withUnsafeMutableBytes { bytes in
      var vector = iovec(iov_base: bytes.baseAddress!, iov_len: bytes.count)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    if case .wrote(let count) = result { outbox.removeFirst(count) }
  }

  func streamReadable() {
    guard let stream else { return }
    var buffer = [UInt8](repeating: 0, count: 8_192)
    buffer.withUnsafeMutableBytes { buffer in
      switch stream.read(into: buffer) {
      case .wouldBlock: break
      case .end, .failed: over()
      case .bytes(let count):
        do {
          try decoder.decode(UnsafeRawBufferPointer(rebasing: buffer[..<count])) {
            header, body throws(WireError) in
            try receive(header, body)
            return !isDone
          }
        } catch {
          oracle.fail(number, "\(attack.kind): the broker broke the protocol: \(error)")
          leave()
        }
      }
    }
  }

  func streamFailed(_ error: IOError) { over() }

  private func receive(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) {
    oracle.chronicle.mix(UInt64(header.type.rawValue))
    note("\(attack.kind) gets \(SimulatedPeer.describe(header, body))")
    switch header.type {
    case .welcome:
      welcome = try Welcome(body: body)
      strike()
    case .pong:
      guard try Pong(body: body).token == Self.probe else { answers += 1; return }
      survived()
    case .ping where attack.kind != .halfFrame:
      send(Pong(token: try Ping(body: body).token).encoded(stream: 0))
    case _ where attack.kind == .storm && header.type != .error: try Storm.check(header, body)
    case .topics, .subscribed: answers += 1
    case .error: judge(try Fault(body: body), header.stream)
    // Another producer completed the topic before the broker received the attack.
    case .complete: judge(Fault(code: .topicEnded, message: ""), header.stream)
    default: break
    }
  }

  private func judge(_ fault: Fault, _ stream: UInt32) {
    if [.shuttingDown, .topicEnded, .topicDeleted].contains(fault.code) {
      // Another peer's action came first.
      hasExpectedError = true
      if stream != 0, !isProbing { probe() }
      return
    }
    switch attack.expectation {
    case .anything: hasExpectedError = true
    case .refused(let codes) where stream == 0 && codes.contains(fault.code): hasExpectedError = true
    case .streamEnds(let codes) where stream == 1 && codes.contains(fault.code):
      oracle.check(!hasExpectedError, number, "\(attack.kind): the same error twice")
      hasExpectedError = true
      probe()
    default:
      let isTimeout = fault.code == .keepaliveTimeout || fault.code == .handshakeTimeout
      if isTimeout, isDisturbed || oracle.excusesTimeouts { break }
      oracle.fail(number, "\(attack.kind) on \(stream) is answered with \(fault.code): \(fault.message)")
    }
  }

  /// The connection is still open.
  private func survived() {
    if attack.doesNotRead, !oracle.brokerIsStopping, !hasExpectedError {
      oracle.check(
        answers == Attack.floodSize, number,
        "\(attack.kind): \(answers) answers to \(Attack.floodSize) questions")
    }
    leave()
  }

  /// The broker has closed the connection.
  private func over() {
    guard !isDone else { return }
    if !isDisturbed, !oracle.brokerIsStopping, !oracle.excusesTimeouts {
      switch attack.expectation {
      case .anything where hasExpectedError: break
      case .anything, .refused:
        // A connection closed after a timeout is reset, and the reset may overtake the last frame.
        oracle.check(
          hasExpectedError || attack.kind == .halfFrame, number,
          "\(attack.kind): the connection ended without a word")
      case .harmless, .streamEnds:
        oracle.fail(number, "\(attack.kind): the connection ended")
      }
    }
    if !comeBack() { leave() }
  }

  func leave() {
    isDone = true
    let stream = stream
    self.stream = nil
    stream?.close()
  }
}
