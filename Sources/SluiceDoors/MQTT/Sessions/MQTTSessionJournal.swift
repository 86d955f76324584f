import SluiceAccess
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// The sessions of MQTT's clients in a topic of the broker, which outlives the process: a record for each change of a session, whose key names it.
///
/// ```
///  +-----------+---------------------------------+
///  | u64       | MQTTKeptSession; nothing where  |
///  | process   | the session has ended           |
///  +-----------+---------------------------------+
/// ```
///
/// It is a client of the broker as others are, on a connection in memory, with permissions for that topic only. Records that arrive in a turn go out
/// together, and are on disk together. A session whose record has become old is written again, so that everything before can be trimmed: the topic has a
/// few records for each session.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTSessionJournal: DoorLinkClient, @unchecked Sendable {
  static let topic = "mqtt.sessions"
  private static let identity = "mqtt-sessions"
  /// Bytes of records in one batch at most, but for one record.
  private static let longestBatch = 256 << 10
  private static let firstDelay = Duration.milliseconds(100)
  private static let longestDelay = Duration.seconds(10)
  /// How often a connection is tried that the broker doesn't serve: after that it has stopped.
  private static let maximumFailures = 30

  private struct Item {
    var key: [UInt8]
    var value: [UInt8]
    var completion: @Sendable () -> Void
  }

  let loop: any EventLoop
  private unowned let store: MQTTSessionStore
  private let process = UInt64.random(in: 1 ... .max)
  /// Has the broker serve a connection; nil once it has stopped.
  private var accept: ((any ByteStream) -> Void)?

  private var link: DoorLink?
  private var native = ClientSession()
  private var publication: UInt32?
  private var subscription: UInt32?
  private var isPublishing = false
  private var isLoaded = false
  private var isStopping = false
  private var failures = 0

  /// Records that aren't sent yet, and those whose acknowledgement is due, by their sequences.
  private var waiting: [Item] = []
  private var sent: [(sequence: UInt64, item: Item)] = []
  private var isComing = false

  private var firstOffset: UInt64 = 0
  private var nextOffset: UInt64 = 0
  private var nextCheck: UInt64 = 0

  init(
    _ store: MQTTSessionStore, on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void
  ) {
    self.store = store
    self.loop = loop
    self.accept = accept
  }

  /// Connects to the broker.
  func open() {
    guard let accept else { return }
    native = ClientSession()
    let link = DoorLink(
      self, transport: nil, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    self.link = link
    accept(link)
  }

  /// Writes a session, or that it has ended.
  func append(_ key: [UInt8], _ bytes: [UInt8], _ completion: @escaping @Sendable () -> Void) {
    var writer = ByteWriter()
    writer.integer(process)
    waiting.append(Item(key: key, value: writer.bytes + bytes, completion: completion))
    guard !isComing else { return }
    isComing = true
    _ = loop.schedule(at: loop.now) { [weak self] in
      self?.isComing = false
      self?.flush()
    }
  }

  // MARK: Records out

  /// Sends what is granted.
  private func flush() {
    guard isPublishing, let publication, let link else { return }
    while !waiting.isEmpty {
      let most = Int(clamping: native.available(publication))
      let room = min(Self.longestBatch, Int(clamping: native.availableBytes(publication)))
      guard most > 0 else { break }
      var batch = BatchBuilder()
      var count = 0
      for item in waiting.prefix(most) {
        if count > 0, batch.bytes.count + item.value.count > room { break }
        add(item, to: &batch)
        count += 1
      }
      let sequence = native.publish(publication, count: batch.count, bytes: batch.bytes.count)
      unsafe batch.bytes.withUnsafeBytes {
        unsafe link.publish(publication, from: sequence, count: count, $0)
      }
      for index in 0..<count { sent.append((sequence + UInt64(index), waiting[index])) }
      waiting.removeFirst(count)
    }
    link.wake()
  }

  private func add(_ item: Item, to batch: inout BatchBuilder) {
    unsafe item.key.withUnsafeBytes { key in
      unsafe item.value.withUnsafeBytes { value in
        // Keys and values are far below the limits of a record.
        try? unsafe batch.append(key: key, headers: [], payload: value)
      }
    }
  }

  private func acknowledged(through: UInt64) {
    let count = sent.prefix { $0.sequence < through }.count
    let done = sent[..<count]
    sent.removeFirst(count)
    for (_, item) in done { item.completion() }
  }

  // MARK: Records in

  private func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    var iterator = unsafe BatchIterator(batch, time: 0)
    var offset = header.firstOffset
    while let record = try? iterator.next() {
      take(record, offset)
      offset += 1
    }
    nextOffset = offset
    if isLoaded { shorten() }
  }

  private func take(_ record: BatchIterator.Record, _ offset: UInt64) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let bytes = unsafe attributes.key, let key = unsafe MQTTHub.Key(decoding: bytes)
    else { return }
    var reader = unsafe ByteReader(attributes.payload)
    let writer = try? reader.integer("process", as: UInt64.self)
    store.found(key, unsafe Array(reader.remaining), isOwn: writer == process, offset: offset)
  }

  /// Trims the topic once most of its records are out of date.
  private func shorten() {
    guard nextOffset >= nextCheck else { return }
    let (count, first) = store.extent
    let limit = UInt64(count) * 2 + 256
    nextCheck = nextOffset + limit / 2
    guard nextOffset - firstOffset > 2 * limit, let link else { return }
    let needed = first ?? nextOffset
    if needed > firstOffset, let request = native.phase == .open ? native.openRequest() : nil {
      link.send(TopicTrim(topic: Self.topic, .from(needed)), stream: request)
      firstOffset = needed
    }
    guard nextOffset - needed > limit else { return }
    for session in store.sessions(before: nextOffset - limit) {
      append(session.key.encoded, session.bytes) {}
    }
  }

  // MARK: The link

  private static let permissions = Permissions(
    (try? TopicPattern(topic)).map { [Permissions.Rule(.all, on: $0)] } ?? [])

  func linkStarted() {
    let permissions = Identity(
      name: Self.identity, proof: .none, permissions: Self.permissions, carriesPermissions: true)
    link?.send(
      Hello(
        maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: "sessions of MQTT",
        credentials: .node(
          onBehalfOf: Self.identity, carrying: CarriedPermissions.encoded(permissions) ?? "")), stream: 0)
    link?.wake()
  }

  func linkReceived(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) -> Bool {
    guard link != nil else { return true }
    guard let action = try? unsafe native.receive(header, body, at: loop.now.nanoseconds) else {
      restart()
      return true
    }
    switch action {
    case .opened: begin()
    case .publicationOpened:
      isPublishing = true
      subscribe()
      flush()
    case .acknowledged(_, let ack): acknowledged(through: ack.through)
    case .granted: flush()
    case .subscribed(_, let place):
      firstOffset = place.nextOffset
      nextOffset = place.nextOffset
    case .deliver(_, let header, let batch): unsafe deliver(header, batch)
    case .lagged(_, let lag): nextOffset = lag.nextOffset
    case .live: loaded()
    case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
    case .goAway: isStopping = true
    // An answer to TOPIC_TRIM that fails leaves the topic longer than it has to be.
    case .refused(let stream, _) where stream == publication || stream == subscription: restart()
    case .ended: restart()
    default: break
    }
    return true
  }

  private func begin() {
    failures = 0
    var settings = TopicSettings(
      replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
      replayAge: TopicSettings.unlimited)
    settings.storage = .durable
    settings.sync = .always
    publication = native.openPublication()
    guard let publication else { return restart() }
    link?.send(
      PublishOpen(topic: Self.topic, acknowledgement: .durable, settings: settings), stream: publication)
  }

  private func subscribe() {
    subscription = native.openSubscription(granted: Credit.unlimited)
    guard let subscription else { return restart() }
    link?.send(
      Subscribe(topic: Self.topic, start: .earliest, grantedThrough: Credit.unlimited), stream: subscription)
  }

  private func loaded() {
    guard !isLoaded else { return }
    isLoaded = true
    for bereaved in store.loaded(at: loop.wallClock) {
      append(bereaved.key.encoded, bereaved.session.encoded) {}
      guard let will = bereaved.will, let accept else { continue }
      // A client that comes back before has its session, but the will of the connection that is gone.
      _ = loop.schedule(after: .seconds(Int64(min(will.delay, bereaved.session.expiry)))) { [loop] in
        MQTTWillSender.publish(will, of: bereaved.key.identity, on: loop, accept: accept)
      }
    }
  }

  /// Gives the connection up: another one follows.
  private func restart() {
    guard let link = link.take() else { return }
    link.end()
    lost()
  }

  func linkWritten() { link?.wake() }

  func linkDrained() { flush() }

  func linkClosed() { lost() }

  /// The connection is gone: what isn't acknowledged is sent again on the next one.
  private func lost() {
    link = nil
    (publication, subscription, isPublishing) = (nil, nil, false)
    waiting.insert(contentsOf: sent.map(\.item), at: 0)
    sent = []
    failures += 1
    guard !isStopping, failures < Self.maximumFailures else { return accept = nil }
    let delay = min(Self.firstDelay * (1 << min(failures, 10)), Self.longestDelay)
    _ = loop.schedule(after: delay) { [weak self] in self?.open() }
  }
}
