import SluiceSession
import SluiceWire
import TestSupport

@testable import SluiceBroker
@testable import SluiceTopics

/// A session, and the simplest model of its streams.
struct SessionModel: ~Copyable {
  private enum Stream: Equatable {
    case free, ended
    case subscription(granted: UInt64)
    case opening
    case publication(granted: UInt64, spent: UInt64)
    case request
  }

  private static let streams: UInt32 = 8
  private static let maximumRecord = 1000
  private static let rules = ServerSessionRules(
    handshake: ServerHandshake(
      offer: Welcome(
        maximumFrame: 1 << 20, maximumRecord: UInt32(maximumRecord), maximumStreams: streams, keepalive: 1000,
        broker: 1, software: "test")),
    maximumRecord: maximumRecord, maximumStreams: streams, maximumPositions: 5)

  private var session = ServerSession()
  private var table: [UInt32: Stream] = [:]
  private var isDraining = false
  /// Whether new credentials are being verified.
  private var isRenewing = false

  /// Reads a byte that selects the event, then its arguments, until the connection ends.
  static func play(_ input: ProbeInput) throws {
    var model = SessionModel()
    var frames = ProbeFrames(input)
    guard try model.receive(Hello(maximumFrame: 1 << 20, keepalive: 0, name: "c").encoded(stream: 0)) else {
      throw ProbeViolation("HELLO is refused")
    }
    while !frames.input.isEmpty {
      switch frames.input.byte() {
      case 0xFF: model.drain()
      case 0xFE: model.end(frames.stream())
      case 0xF8...0xFD: try model.answer(frames.stream())
      case 0xE0...0xF7: try model.grant(frames.input.number(), frames.input.number(), to: frames.stream())
      default: guard try model.receive(frames.fromClient()) else { return }
      }
      try model.check()
    }
  }

  // MARK: What the broker does

  private mutating func drain() {
    session.drain()
    isDraining = true
  }

  private mutating func end(_ stream: UInt32) {
    guard let old = table[stream], old != .free else { return }
    session.ended(stream)
    table[stream] = .ended
  }

  private mutating func answer(_ stream: UInt32) throws {
    let request = session.request(on: stream)
    guard (request != nil) == (table[stream] == .request) else {
      throw ProbeViolation("stream \(stream) waits for an answer, or doesn't")
    }
    let isWanted = session.answers(request)
    guard isWanted == (request != nil), !session.answers(request) else {
      throw ProbeViolation("an answer is wanted: \(isWanted)")
    }
    if isWanted { table[stream] = .free }
    session.renewed()
    isRenewing = false
  }

  private mutating func grant(_ records: UInt64, _ bytes: UInt64, to stream: UInt32) throws {
    // A topic grants at most its window at a time.
    let more = PublishingBudget.Allowance(records: min(records, 1 << 32), bytes: bytes)
    let demand = session.grant(more, to: stream)
    guard !isDraining, more != .init(), case .publication(let granted, let spent) = table[stream] else {
      guard demand == nil else { throw ProbeViolation("\(more) is granted on stream \(stream)") }
      return
    }
    guard let demand, demand.grantedThrough == granted + more.records else {
      throw ProbeViolation("\(more) is granted with \(String(describing: demand)), after \(granted)")
    }
    table[stream] = .publication(granted: demand.grantedThrough, spent: spent)
  }

  // MARK: What the client does

  /// Returns false if the connection has ended.
  private mutating func receive(_ frame: [UInt8]) throws -> Bool {
    try withExactMemory(frame) { frame in
      let header = FrameHeader(at: frame.baseAddress!)
      let body = UnsafeRawBufferPointer(rebasing: frame[FrameHeader.size...])
      let action: ServerAction
      do {
        guard try header.admission(at: .broker) == .take else { return true }
        action = try session.receive(header, body, Self.rules)
      } catch let error as WireError {
        guard error.code.endsConnection else { throw ProbeViolation("the connection ends with \(error)") }
        return false
      }
      try take(action, header, body)
      return true
    }
  }

  private mutating func take(
    _ action: ServerAction, _ header: FrameHeader, _ body: UnsafeRawBufferPointer
  ) throws {
    switch action {
    case .welcome, .pong: break
    case .none, .openingPattern, .readPositions: try nothing(header, body)
    case .append(let stream, let count, let batch, _): try append(stream, count, batch)
    case .demand(let stream, let through):
      guard case .subscription(let granted) = table[stream], through > granted else {
        throw ProbeViolation("demand through \(through) on \(stream), which is \(shown(stream))")
      }
      table[stream] = .subscription(granted: through)
    case .commit(let stream, _):
      if case .subscription = table[stream] { break }
      guard table[stream] == .ended else { throw unexpected(header, action) }
    case .settle(let stream, _), .lend(let stream, _):
      guard case .subscription = table[stream] else { throw unexpected(header, action) }
    case .subscribe(let stream, let frame):
      try open(stream, .subscription(granted: frame.grantedThrough))
    case .join(let stream, let frame): try open(stream, .subscription(granted: frame.grantedThrough))
    case .subscribePattern(let stream, let frame):
      guard frame.positions.count <= 5 || header.type == .subscribePattern else {
        throw ProbeViolation("\(frame.positions.count) positions were kept")
      }
      if header.type == .positions {
        guard table[stream] == .opening else { throw unexpected(header, action) }
        table[stream] = .free
      }
      try open(stream, .subscription(granted: frame.grantedThrough), draining: true)
    case .openPublication(let stream, let frame):
      try open(stream, .publication(granted: frame.firstSequence, spent: frame.firstSequence))
    case .createTopic(let stream, _), .showTopic(let stream, _), .listTopics(let stream, _, _),
      .deleteTopic(let stream, _), .connectTopic(let stream, _, _), .listCursors(let stream, _, _, _),
      .moveCursor(let stream, _), .deleteCursor(let stream, _, _), .setTopic(let stream, _),
      .trimTopic(let stream, _), .listStates(let stream, _), .restoreStates(let stream, _),
      .listConnections(let stream, _, _), .closeConnection(let stream, _),
      .showBroker(let stream), .showCluster(let stream, _), .drainNode(let stream, _),
      .moveShard(let stream, _):
      try open(stream, .request)
    case .authenticate: throw unexpected(header, action)
    case .renew(let stream, _):
      guard !isRenewing else { throw unexpected(header, action) }
      isRenewing = true
      try open(stream, .request)
    case .complete(let stream, _):
      guard case .publication = table[stream], !isDraining else { throw unexpected(header, action) }
      table[stream] = .free
    case .cancel(let stream):
      switch table[stream] {
      case .subscription, .publication: table[stream] = .free
      default: throw unexpected(header, action)
      }
    case .confirmCancel(let stream):
      switch table[stream] {
      case .subscription, .publication, nil: throw unexpected(header, action)
      default: table[stream] = .free
      }
    case .fault(let stream, let fault):
      // A broker that stops sends an error on each stream that it doesn't open.
      let isOfStream =
        !fault.code.endsConnection || fault.code == .shuttingDown && isDraining
        || fault.code == .tooManyAttempts && isRenewing
      guard stream != 0, stream <= Self.streams, isOfStream, !fault.message.isEmpty else {
        throw unexpected(header, action)
      }
      enter(stream, .ended)
    }
  }

  /// The frame has no effect.
  private mutating func nothing(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws {
    switch header.type {
    case .subscribePattern: try open(header.stream, .opening)
    case .publish, .complete:
      guard isDraining || table[header.stream] == .ended else { throw unexpected(header, .none) }
    case .settle, .lend:
      guard table[header.stream] == .ended else { throw unexpected(header, .none) }
    case .demand, .positions, .pong, .error: break
    default: throw unexpected(header, .none)
    }
  }

  private mutating func open(_ stream: UInt32, _ state: Stream, draining: Bool = false) throws {
    let old = table[stream] ?? .free
    guard stream != 0, stream <= Self.streams, old == .free || old == .ended, !isDraining || draining else {
      throw ProbeViolation("stream \(stream), which is \(old), is opened for \(state)")
    }
    enter(stream, state)
  }

  /// Once a stream was requested, lower ones may be cancelled.
  private mutating func enter(_ stream: UInt32, _ state: Stream) {
    table[stream] = state
    for lower in 1...stream where table[lower] == nil { table[lower] = .free }
  }

  private mutating func append(_ stream: UInt32, _ count: UInt32, _ batch: UnsafeRawBufferPointer) throws {
    guard case .publication(let granted, let spent) = table[stream], !isDraining else {
      throw ProbeViolation("records are taken on stream \(stream), which is \(shown(stream))")
    }
    var iterator = BatchIterator(batch, count: count, time: 0)
    while let record = try iterator.next() {
      guard record.body.count <= Self.maximumRecord else { throw ProbeViolation("a record is too long") }
    }
    guard count > 0, UInt64(count) <= granted - spent else {
      throw ProbeViolation("\(count) records are taken where \(granted - spent) were granted")
    }
    table[stream] = .publication(granted: granted, spent: spent + UInt64(count))
  }

  // MARK: Afterwards

  private func check() throws {
    for stream in 0...Self.streams + 1 {
      let granted: UInt64? = if case .subscription(let through) = table[stream] { through } else { nil }
      guard session.granted(stream) == granted,
        (session.request(on: stream) != nil) == (table[stream] == .request)
      else { throw ProbeViolation("stream \(stream) isn't \(shown(stream))") }
      let credit = session.publication(stream)?.records
      if case .publication(let granted, let spent) = table[stream] {
        guard credit?.granted == granted, credit?.spent == spent else {
          throw ProbeViolation("stream \(stream) has \(String(describing: credit)), not \(shown(stream))")
        }
      } else if let credit {
        throw ProbeViolation("stream \(stream) has \(credit), not \(shown(stream))")
      }
    }
    let open = table.filter {
      switch $0.value {
      case .subscription, .publication: true
      default: false
      }
    }
    guard session.openStreams == open.keys.sorted() else {
      throw ProbeViolation("\(session.openStreams) are open, not \(open.keys.sorted())")
    }
  }

  private func shown(_ stream: UInt32) -> String { table[stream].map { "\($0)" } ?? "not there" }

  private func unexpected(_ header: FrameHeader, _ action: ServerAction) -> ProbeViolation {
    ProbeViolation("\(header) on a stream that is \(shown(header.stream)) becomes \(action)")
  }
}
