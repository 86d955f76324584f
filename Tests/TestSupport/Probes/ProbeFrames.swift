import SluiceWire

/// Valid and invalid frames of every type, made from a fuzzer's input: numbers near their limits, and few names and streams, so that frames refer to
/// each other.
///
/// Tracks the streams that each client has opened, and mostly sends frames that fit them: a frame on a stream that isn't open ends the connection.
public struct ProbeFrames {
  public var input: ProbeInput
  /// The client that sends the next frames.
  public var client = 0
  /// The topic names in use; and names of topics that are only read.
  public var topics = ["t", "t.a", "d.a", "d.b", "k.a", "g", "_inbox.a", "dead", "$x", "a..b", ""]
  public var readTopics: [String] = []
  /// A byte selects a frame's stream: values from this one on stand for any stream, lower ones for a stream that fits.
  public var disorder: UInt8 = 0xE0

  private enum Use {
    case subscription
    /// The next sequence, as a client that follows the rules would count.
    case publication(UInt64)
  }

  /// The open streams of each client.
  private var streams: [Int: [UInt32: Use]] = [:]

  public init(_ input: ProbeInput) {
    self.input = input
  }

  /// The client has reconnected.
  public mutating func startOver() {
    streams[client] = nil
  }

  /// A frame that a client sends.
  public mutating func fromClient() -> [UInt8] {
    switch input.byte() % 32 {
    case 0, 1: return subscribe()
    case 2, 3: return joinGroup()
    case 4: return subscribePattern()
    case 5: return toSubscription(Positions(positions(), more: input.bool()))
    case 6, 7, 8: return toSubscription(Demand(grantedThrough: input.number(), bytesThrough: input.number()))
    case 9: return cancel()
    case 10, 11: return publishOpen()
    case 12, 13, 14, 15: return publish()
    case 16: return complete()
    case 17, 18:
      let verdict = input.element(of: Settle.Verdict.allCases)
      return toSubscription(
        Settle(
          verdict, delivery: input.shortNumber(), firstOffset: input.number(), count: input.shortNumber(),
          delay: input.shortNumber()))
    case 19, 20:
      let offset = input.number()
      return input.bool()
        ? toSubscription(Commit(nextOffset: offset))
        : toSubscription(
          Lend(grantedThrough: offset, pacedThrough: input.number(), recalls: input.bool()))
    case 21, 22: return request(TopicCreate(topic: topic(), settings: settings()))
    case 23: return request(TopicShow(topic: topic(isRead: true)))
    case 24: return request(TopicList(after: topic(isRead: true), limit: input.shortNumber()))
    case 25: return request(TopicDelete(topic: topic()))
    case 26:
      let isConnected = input.bool()
      return isConnected
        ? request(TopicConnect(topic: topic())) : request(TopicDisconnect(topic: topic()))
    case 27:
      return request(CursorList(topic: topic(isRead: true), after: cursor(), limit: input.shortNumber()))
    case 28: return request(CursorMove(topic: topic(isRead: true), name: cursor(), to: start()))
    case 29:
      return input.bool() ? request(CursorDelete(topic: topic(isRead: true), name: cursor())) : changeTopic()
    case 30: return aboutTheConnection()
    default: return anything()
    }
  }

  /// A request that changes a topic or concerns the whole broker. Requests to close connections use numbers that no client has.
  private mutating func changeTopic() -> [UInt8] {
    switch input.byte() % 10 {
    case 0, 1, 2: request(TopicSet(topic: topic(), settings: settings()))
    case 8: request(StateList(topic: topic(isRead: true), kind: input.bool() ? .producer : .group))
    case 9:
      request(
        StateRestore(
          topic: topic(), kind: input.bool() ? .producer : .group, origin: input.number(),
          states: [StateEntry(key: Array(cursor().utf8), value: Array(input.text().utf8))]))
    case 3, 4:
      request(TopicTrim(topic: topic(), input.bool() ? .from(input.number()) : .newest(input.number())))
    case 5: request(ConnectionList(after: input.number(), limit: input.shortNumber()))
    case 6: request(ConnectionClose(connection: .max - input.number() % 1000))
    default: aboutTheCluster()
    }
  }

  private mutating func aboutTheCluster() -> [UInt8] {
    switch input.byte() % 4 {
    case 0: request(BrokerShow())
    case 1:
      request(
        ClusterShow(
          after: input.text(), nodes: input.shortNumber(), firstShard: input.shortNumber(),
          shards: input.shortNumber()))
    case 2: request(ClusterDrain(node: input.text(), wanted: input.bool()))
    default: request(ClusterMove(shard: input.shortNumber(), node: input.text()))
    }
  }

  /// A frame that a broker sends.
  public mutating func fromBroker() -> [UInt8] {
    switch input.byte() % 32 {
    case 0, 1, 2: encoded(place())
    case 3, 4, 5, 6: deliver()
    case 7:
      input.bool()
        ? encoded(Live(nextOffset: input.number())) : encoded(Producers(count: input.shortNumber()))
    case 8: encoded(Lag(missed: input.number(), nextOffset: input.number()))
    case 9: encoded(Cancelled(hasStartedOver: input.bool()))
    case 10: encoded(Complete(ending()))
    case 11, 12:
      encoded(
        PublishOpened(
          epoch: input.number(), grantedThrough: input.number(), bytesThrough: input.number(),
          nextSequence: input.number()))
    case 13, 14: encoded(Demand(grantedThrough: input.number(), bytesThrough: input.number()))
    case 15: encoded(Ack(through: input.number(), lastOffset: input.number()))
    case 16: input.bool() ? encoded(Connected()) : encoded(Disconnected())
    case 17: encoded(Matched(number: input.shortNumber(), topic: topic(), place: place()))
    case 18: encoded(Unmatched(number: input.shortNumber()))
    case 19: encoded(SelectTopic(number: input.shortNumber()))
    case 20:
      input.bool()
        ? encoded(Deliveries(count: input.shortNumber()))
        : encoded(Offer(returned: input.number(), waits: input.bool(), isPaced: input.bool()))
    case 21: encoded(Fault(code: ErrorCode(rawValue: input.shortNumber()), message: "no"))
    case 22: encoded(TopicInfo(summary: summary(), settings: settings(), subscriptions: [], publications: []))
    case 23: encoded(Topics(topics: [summary()], more: input.bool()))
    case 24:
      encoded(
        Cursors(
          cursors: [
            CursorInfo(
              name: cursor(), kind: input.element(of: CursorInfo.Kind.allCases), epoch: input.number(),
              nextOffset: input.number(), end: input.number(), members: input.shortNumber(),
              outstanding: input.number(), idle: input.number(), bytes: input.number(), age: input.number(),
              redeliveries: input.number(), deadLetters: input.number(), abandoned: input.number(),
              missed: input.number(), delayed: input.number(), nextRetry: input.number())
          ], more: input.bool()))
    case 25: input.bool() ? encoded(Done()) : encoded(Redirect(node: cursor(), address: "b:7420"))
    case 26: Ping(token: input.number()).encoded(stream: 0)
    case 27: Pong(token: input.number()).encoded(stream: 0)
    case 28: GoAway(code: ErrorCode(rawValue: input.shortNumber()), message: "bye").encoded(stream: 0)
    case 29: encoded(Authenticated(identity: input.text(), expires: input.number()))
    default: anything()
    }
  }

  // MARK: Streams

  /// Mostly one of four streams.
  public mutating func stream() -> UInt32 { Self.stream(input.byte()) }

  private static func stream(_ byte: UInt8) -> UInt32 {
    switch byte {
    case 0xF0: 0
    case 0xF1: .max
    case 0xF2: 9
    case let byte where byte > 0xF2: UInt32(byte & 7) + 1
    case let byte: UInt32(byte % 4) + 1
    }
  }

  /// One of the client's streams in that use, if there is any, or else any stream.
  private mutating func stream(where isFitting: (Use?) -> Bool) -> UInt32 {
    let byte = input.byte()
    let fitting = fitting(isFitting)
    guard byte < disorder, !fitting.isEmpty else { return Self.stream(byte) }
    return fitting[Int(byte) % fitting.count]
  }

  private func fitting(_ isFitting: (Use?) -> Bool) -> [UInt32] {
    (1...6 as ClosedRange<UInt32>).filter { isFitting(streams[client]?[$0]) }
  }

  private static func isSubscription(_ use: Use?) -> Bool {
    if case .subscription = use { true } else { false }
  }

  private static func isPublication(_ use: Use?) -> Bool {
    if case .publication = use { true } else { false }
  }

  private mutating func freeStream() -> UInt32 { stream { $0 == nil } }

  private mutating func open(_ frame: some Frame, as use: Use) -> [UInt8] {
    let stream = freeStream()
    streams[client, default: [:]][stream] = use
    return frame.encoded(stream: stream)
  }

  /// The stream is free again after the reply.
  private mutating func request(_ frame: some Frame) -> [UInt8] { frame.encoded(stream: freeStream()) }

  private mutating func toSubscription(_ frame: some Frame) -> [UInt8] {
    if fitting(Self.isSubscription).isEmpty { return subscribe() }
    return frame.encoded(stream: stream(where: Self.isSubscription))
  }

  private mutating func toPublication() -> (stream: UInt32, published: UInt64) {
    let stream = stream(where: Self.isPublication)
    guard case .publication(let count) = streams[client]?[stream] else { return (stream, 0) }
    return (stream, count)
  }

  private mutating func cancel() -> [UInt8] {
    let stream = stream { $0 != nil }
    streams[client]?[stream] = nil
    return Cancel().encoded(stream: stream)
  }

  private mutating func encoded(_ frame: some Frame) -> [UInt8] { frame.encoded(stream: stream()) }

  // MARK: Subscriptions

  private mutating func subscribe() -> [UInt8] {
    open(
      Subscribe(
        topic: topic(isRead: true), start: start(), lag: input.element(of: [.skip, .fail, nil]),
        epoch: input.number(),
        grantedThrough: input.number(), cursor: input.bool() ? cursor() : "", filter: filter()),
      as: .subscription)
  }

  private mutating func joinGroup() -> [UInt8] {
    open(
      JoinGroup(
        topic: topic(isRead: true), group: cursor(), start: start(),
        settings: JoinGroup.Settings(
          acknowledgement: input.element(of: JoinGroup.Acknowledgement.allCases),
          order: input.element(of: JoinGroup.Order.allCases), deadline: input.shortNumber(),
          deliveries: input.shortNumber(), deadLetters: input.bool() ? topic() : "", filter: filter(),
          retryBackoff: JoinGroup.Backoff(first: input.shortNumber(), longest: input.shortNumber())),
        grantedThrough: input.number()), as: .subscription)
  }

  private mutating func subscribePattern() -> [UInt8] {
    open(
      SubscribePattern(
        pattern: input.element(of: [">", "*", "t.>", "d.*", "*.a", "t", ">.a", "_inbox.*"]), start: start(),
        lag: input.element(of: [.skip, .fail, nil]), grantedThrough: input.number(), filter: filter(),
        positions: positions(), more: input.bool()), as: .subscription)
  }

  private mutating func positions() -> [TopicPosition] {
    (0..<Int(input.byte() % 4)).map { _ in
      TopicPosition(topic: topic(isRead: true), epoch: input.number(), nextOffset: input.number())
    }
  }

  private mutating func start() -> Subscribe.Start {
    let kind = input.byte() % 6
    let value = kind > 2 ? input.number() : 0
    return switch kind {
    case 0: .replay
    case 1: .earliest
    case 2: .new
    case 3: .last(value)
    case 4: .offset(value)
    default: .time(Int64(bitPattern: value))
    }
  }

  private mutating func filter() -> RecordFilter {
    let count = input.byte()
    guard count < 64 else { return RecordFilter() }
    return RecordFilter(
      (0..<Int(count % 4)).map { _ in
        let subject: RecordFilter.Subject = input.bool() ? .key : .header(input.bool() ? "h" : "n")
        let value = input.bytes(Int(input.byte() % 3))
        return .init(subject, input.element(of: [.exists, .equals(value), .hasPrefix(value)]))
      })
  }

  // MARK: Publications

  private mutating func publishOpen() -> [UInt8] {
    let first = input.bool() ? input.number() : 0
    return open(
      PublishOpen(
        topic: topic(), acknowledgement: input.element(of: [.none, .received, .durable]),
        role: PublishOpen.Role(rawValue: input.byte() % 3) ?? .producer, producer: UInt64(input.byte() % 4),
        firstSequence: first),
      as: .publication(first))
  }

  private mutating func publish() -> [UInt8] {
    if fitting(Self.isPublication).isEmpty { return publishOpen() }
    var (stream, first) = toPublication()
    let batch = batch()
    streams[client]?[stream] = .publication(first &+ UInt64(batch.count))
    var count = batch.count
    switch input.byte() {
    case 0xFF: first = input.number()
    case 0xFE: count = input.shortNumber()
    default: break
    }
    var front = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
    front.withUnsafeMutableBytes {
      PublishHeader(firstSequence: first, count: count)
        .write(at: $0.baseAddress!, stream: stream, batchLength: batch.bytes.count)
    }
    return front + batch.bytes
  }

  /// Records of any kind, some of them malformed.
  private mutating func batch() -> (bytes: [UInt8], count: UInt32) {
    var builder = BatchBuilder()
    for _ in 0..<Int(input.byte() % 6) + 1 {
      let shape = input.byte()
      let key = shape & 1 != 0 ? input.bytes(Int(shape >> 6)) : nil
      let headers = shape & 2 != 0 ? [(name: Array("h".utf8), value: input.bytes(Int(shape >> 6)))] : []
      let payload = input.bytes(shape & 4 != 0 ? Int(input.byte()) * 8 : Int(shape >> 3 & 7))
      payload.withUnsafeBytes { payload in
        guard let key else { return try? builder.append(key: nil, headers: headers, payload: payload) }
        key.withUnsafeBytes { try? builder.append(key: $0, headers: headers, payload: payload) }
      }
    }
    var bytes = builder.bytes
    switch input.byte() {
    case 0xFF: bytes = input.bytes(Int(input.byte()))
    case 0xFE: bytes[Int(input.byte()) % bytes.count] = input.byte()
    case 0xFD: bytes.removeLast()
    default: break
    }
    return (bytes, builder.count)
  }

  private mutating func deliver() -> [UInt8] {
    let batch = batch()
    var count = batch.count
    if input.byte() == 0xFF { count = input.shortNumber() }
    var front = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size)
    let header = DeliverHeader(firstOffset: input.number(), count: count)
    let (stream, hasMark) = (stream(), input.byte() == 0xFF)
    var bytes: [UInt8] = []
    if hasMark {
      bytes = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
      let time = Int64(bitPattern: input.number())
      bytes.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
    }
    bytes += batch.bytes
    front.withUnsafeMutableBytes {
      header.write(at: $0.baseAddress!, stream: stream, batchLength: bytes.count)
    }
    return front + bytes
  }

  private mutating func complete() -> [UInt8] {
    if fitting(Self.isPublication).isEmpty { return publishOpen() }
    let stream = toPublication().stream
    streams[client]?[stream] = nil
    return Complete(ending()).encoded(stream: stream)
  }

  private mutating func ending() -> Complete.Ending {
    input.bool() ? .finished : .failure(code: ErrorCode(rawValue: input.shortNumber()), message: "failed")
  }

  // MARK: Topics

  private mutating func topic(isRead: Bool = false) -> String {
    input.element(of: isRead ? topics + readTopics : topics)
  }

  private mutating func cursor() -> String { input.element(of: ["c", "g", "c.d", "*", ""]) }

  private mutating func settings() -> TopicSettings {
    var settings = TopicSettings()
    let named: UInt16 = input.integer()
    func isNamed(_ bit: UInt16) -> Bool { named & 1 << bit != 0 }
    if isNamed(0) { settings.replayRecords = input.number() }
    if isNamed(1) { settings.replayBytes = input.number() }
    if isNamed(2) { settings.replayAge = input.number() }
    if isNamed(3) { settings.scope = input.element(of: TopicSettings.Scope.allCases) }
    if isNamed(4) { settings.flow = input.element(of: TopicSettings.Flow.allCases) }
    if isNamed(5) { settings.connect = input.element(of: [.immediate, .auto(1), .auto(.max), .manual]) }
    if isNamed(6) { settings.bufferRecords = input.number() }
    if isNamed(7) { settings.bufferBytes = input.number() }
    if isNamed(8) { settings.withoutSubscribers = input.element(of: TopicSettings.WhenAlone.allCases) }
    if isNamed(9) { settings.lag = input.element(of: [.skip, .fail]) }
    if isNamed(10) { settings.compact = input.bool() }
    if isNamed(11) { settings.autoDelete = input.bool() }
    if isNamed(12) { settings.storage = input.element(of: TopicSettings.Storage.allCases) }
    if isNamed(13) { settings.sync = input.element(of: [.always, .interval(1), .interval(.max), .os]) }
    return settings
  }

  private mutating func place() -> Subscribed {
    Subscribed(
      epoch: input.number(), nextOffset: input.number(), liveOffset: input.number(), gaps: input.bool(),
      continues: input.bool())
  }

  private mutating func summary() -> TopicSummary {
    TopicSummary(
      topic: topic(), epoch: input.number(), firstOffset: input.number(), nextOffset: input.number(),
      bytes: input.number(), ending: input.bool() ? nil : ending(), subscriptions: input.shortNumber(),
      publications: input.shortNumber(), records: input.number())
  }

  // MARK: The rest

  private mutating func aboutTheConnection() -> [UInt8] {
    switch input.byte() % 5 {
    case 0: Ping(token: input.number()).encoded(stream: 0)
    case 1: Pong(token: input.number()).encoded(stream: 0)
    case 2: Fault(code: ErrorCode(rawValue: input.shortNumber()), message: "").encoded(stream: 0)
    case 3: encoded(Authenticate(input.bool() ? .token(input.text()) : .password("p", user: input.text())))
    default: hello().encoded(stream: 0)
    }
  }

  public mutating func hello() -> Hello {
    Hello(
      versions: 1...max(1, UInt16(input.byte())), features: input.number(),
      maximumFrame: max(UInt32(Limits.smallestFrame), input.shortNumber()), keepalive: input.shortNumber(),
      name: input.text(), credentials: input.bool() ? .none : .password("p", user: "u"))
  }

  /// An arbitrary header and an arbitrary body.
  private mutating func anything() -> [UInt8] {
    let type = FrameType(rawValue: input.byte())
    let flags = input.byte()
    let stream = stream()
    let body = input.bytes(Int(input.byte()))
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size)
    bytes.withUnsafeMutableBytes {
      FrameHeader(length: UInt32(body.count), type: type, flags: flags & 0x80 | flags >> 6, stream: stream)
        .write(at: $0.baseAddress!)
    }
    return bytes + body
  }
}
