import SluiceIO
import SluiceWire

/// Publishes unique records, each exactly once, across lost connections and brokers.
final class DurableProducer: DurableUser {
  private enum Phase {
    case away
    case opening
    case open
    case ending
    case over
  }

  private let plan: DurablePlan.Producer
  private let topic: String
  private unowned let peer: DurablePeer
  private unowned let oracle: DurableOracle
  /// Its index in the oracle.
  private let number: Int
  private var phase = Phase.away
  /// Records that need not be sent again.
  private var acknowledged = 0
  /// The next record to send.
  private var next = 0
  private var granted: UInt64 = 0
  private var bytesGranted: UInt64 = 0
  private var bytesSent: UInt64 = 0
  private var isWaiting = false
  private var isSettling = false

  private static let stream: UInt32 = 1

  init(_ plan: DurablePlan.Producer, topic: String, peer: DurablePeer) {
    self.plan = plan
    self.topic = topic
    self.peer = peer
    oracle = peer.oracle
    number = oracle.addProducer()
  }

  private var isDurable: Bool { plan.acknowledgement == .durable }
  private var identity: UInt64 { 1_000 + UInt64(number) }
  private var made: Int { oracle.made[number].count }

  // MARK: Opening

  func connected() { peer.later(within: .milliseconds(20)) { [weak self] in self?.open() } }

  private func open() {
    guard phase == .away, peer.isOpen else { return }
    phase = .opening
    peer.note("producer \(number) opens \(topic) from \(acknowledged)")
    peer.send(
      PublishOpen(
        topic: topic, acknowledgement: plan.acknowledgement, producer: identity,
        firstSequence: UInt64(acknowledged)), stream: Self.stream)
  }

  private func opened(_ frame: PublishOpened) {
    guard phase == .opening else { return }
    phase = .open
    let known = Int(frame.nextSequence)
    oracle.check(
      known >= acknowledged && known <= made,
      "producer \(number) has made \(made), and \(acknowledged) are acknowledged, and it is asked for \(known)"
    )
    acknowledged = min(max(known, acknowledged), made)
    oracle.truth(topic)?.acknowledged(number, through: acknowledged, at: nil, isDurable: isDurable)
    next = acknowledged
    granted = frame.grantedThrough
    bytesGranted = frame.bytesThrough
    bytesSent = 0
    pump()
  }

  // MARK: Publishing

  private func pump() {
    guard phase == .open, !isWaiting, peer.isOpen else { return }
    var burst = isSettling ? Int.max : peer.random.next(in: 1...6)
    while burst > 0, next < plan.records, UInt64(next) < granted, bytesSent < bytesGranted {
      burst -= publish()
    }
    if acknowledged == plan.records { return conclude() }
    guard next < plan.records else { return }
    isWaiting = true
    peer.later(within: isSettling ? .milliseconds(1) : .milliseconds(60)) { [weak self] in
      self?.isWaiting = false
      self?.pump()
    }
  }

  private func publish() -> Int {
    let most = min(peer.random.next(in: 1...4), plan.records - next, Int(clamping: granted) - next)
    var builder = BatchBuilder()
    var count = 0
    // The last record may exceed the granted bytes.
    while count < most, UInt64(builder.bytes.count) < bytesGranted - bytesSent {
      append(next + count, to: &builder)
      count += 1
    }
    peer.send(
      PublishHeader(firstSequence: UInt64(next), count: UInt32(count)), builder.bytes, stream: Self.stream)
    next += count
    bytesSent += UInt64(builder.bytes.count)
    return count
  }

  /// Appends the record with that sequence, creating it if necessary.
  private func append(_ sequence: Int, to builder: inout BatchBuilder) {
    if sequence == made { oracle.make(record(sequence), by: number) }
    let record = oracle.made[number][sequence]
    record.body.withUnsafeBytes { body in
      guard record.isAttributed, let attributes = try? RecordAttributes(body) else {
        return builder.append(body)
      }
      do {
        try builder.append(key: attributes.key, headers: [], payload: attributes.payload)
      } catch {
        oracle.fail("a record in order is refused: \(error)")
      }
    }
  }

  private func record(_ sequence: Int) -> DurableOracle.Record {
    let size = peer.random.oneIn(40) ? 20_000 : peer.random.next(in: 8...200)
    var payload = Noise.piece(of: size, choice: UInt64(number) << 32 | UInt64(sequence)) { Array($0) }
    payload.withUnsafeMutableBytes {
      $0.storeBytes(of: UInt32(number).littleEndian, as: UInt32.self)
      $0.storeBytes(of: UInt32(sequence).littleEndian, toByteOffset: 4, as: UInt32.self)
    }
    guard peer.random.oneIn(3) else { return DurableOracle.Record(isAttributed: false, body: payload) }
    var builder = BatchBuilder()
    let key = Array("key \(sequence % 5)".utf8)
    payload.withUnsafeBytes { payload in
      key.withUnsafeBytes { try? builder.append(key: $0, headers: [], payload: payload) }
    }
    return builder.bytes.withUnsafeBytes { oracle.records(in: $0)[0] }
  }

  /// Call it once all records are acknowledged.
  private func conclude() {
    guard plan.ends, isSettling else { return }
    phase = .ending
    peer.note("producer \(number) ends \(topic)")
    peer.send(Complete(.finished), stream: Self.stream)
  }

  // MARK: Frames

  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    switch header.type {
    case .publishOpened: opened(try PublishOpened(body: body))
    case .demand:
      let demand = try Demand(body: body)
      granted = max(granted, demand.grantedThrough)
      bytesGranted = max(bytesGranted, demand.bytesThrough)
      pump()
    case .ack: acknowledge(try Ack(body: body))
    case .cancelled:
      oracle.check(phase == .ending, "producer \(number) is cancelled")
      oracle.truth(topic)?.told(.finished, client: "producer \(number)")
      over()
    case .complete:
      oracle.truth(topic)?.told(try Complete(body: body).ending, client: "producer \(number)")
      over()
    case .error: refused(try Fault(body: body))
    default: oracle.fail("\(header.type) on a publication")
    }
    return false
  }

  private func acknowledge(_ ack: Ack) {
    guard phase == .open || phase == .ending else { return }
    let through = Int(ack.through)
    oracle.check(
      through > acknowledged && through <= next,
      "producer \(number) has \(acknowledged) to \(next) under way, and gets an ACK through \(through)")
    acknowledged = max(acknowledged, min(through, next))
    oracle.truth(topic)?.acknowledged(number, through: through, at: ack.lastOffset, isDurable: isDurable)
    if acknowledged == plan.records { pump() }
  }

  private func refused(_ fault: Fault) {
    switch fault.code {
    case .storageFull, .storageFailed, .shuttingDown:
      phase = .away
      isWaiting = false
      peer.later(within: .milliseconds(200)) { [weak self] in self?.open() }
    case .topicEnded:
      oracle.check(
        oracle.truth(topic)?.ending != nil || oracle.isEnding(topic),
        "producer \(number) is told that \(topic) has ended")
      over()
    default: oracle.fail("producer \(number) ended with \(fault.code): \(fault.message)")
    }
  }

  private func over() { phase = .over }

  func disconnected() {
    if phase != .over { phase = .away }
    isWaiting = false
  }

  // MARK: Settling

  func settle() {
    isSettling = true
    isWaiting = false
    if plan.ends { oracle.ends(topic) }
    if phase == .away { open() } else { pump() }
  }

  var unsettled: String? {
    switch phase {
    case .over: return nil
    case .open where acknowledged == plan.records && !plan.ends: return nil
    default:
      return
        "producer \(number) of \(topic) is \(phase) with \(acknowledged) of \(plan.records) acknowledged, \(next) sent, \(granted) granted"
    }
  }
}
