import SluiceAccess
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// What has the entries of a journal. Called on the journal's loop.
protocol MQTTJournalKeeper: AnyObject {
  /// A record of the topic, in place: of an earlier process, or one of this process that has come back. An empty value ends the entry.
  func found(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64)

  /// All records of earlier processes have been found.
  func loaded(_ journal: MQTTJournal)

  /// What of the topic is still needed: how many entries, and from which offset on.
  var extent: (count: Int, first: UInt64?) { get }

  /// Writes the entries again whose newest record stands before an offset.
  func rewrite(before offset: UInt64, by journal: MQTTJournal)

  /// A record that ``MQTTJournal/readAgain(before:)`` has read, in place: written again where it is its entry's newest.
  func foundAgain(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isOwn: Bool, offset: UInt64,
    by journal: MQTTJournal)
}

/// Entries by keys in a topic of the broker, which outlives the process: a record for each change of an entry.
///
/// ```
///  +-----------+---------------------------------+
///  | u64       | the entry's value; nothing      |
///  | process   | where the entry has ended       |
///  +-----------+---------------------------------+
/// ```
///
/// It is a client of the broker as others are, on a connection in memory, with permissions for that topic only. Records that arrive in a turn go out
/// together, and are on disk together. An entry whose record has become old is written again, so that everything before can be trimmed: the topic has a
/// few records for each entry.
///
/// Where this process' own records are in the topic matters for trimming only. So the journal reads them when the topic has become long, and not as they are
/// written: a topic without a subscriber has nothing in the broker's memory.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTJournal: DoorLinkClient, @unchecked Sendable {
  let topic: String
  /// The name of the identity, and of the client, that the broker's lists have for it.
  private let identity: String
  private let name: String
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
  private unowned let keeper: any MQTTJournalKeeper
  private let process = UInt64.random(in: 1 ... .max)
  /// Has the broker serve a connection; nil once it has stopped.
  private(set) var accept: ((any ByteStream) -> Void)?

  private var link: DoorLink?
  private var native = ClientSession()
  private var publication: UInt32?
  private var subscription: UInt32?
  /// The stream that reads old records again, up to an offset.
  private var rereading: (stream: UInt32, end: UInt64)?
  private var isPublishing = false
  private var isLoaded = false
  private var isStopping = false
  private var failures = 0

  /// Records that aren't sent yet, and those whose acknowledgement is due, by their sequences.
  private var waiting: [Item] = []
  private var sent: [(sequence: UInt64, item: Item)] = []
  private var isComing = false

  /// The life of the topic that is read; 0 before it is known.
  private var epoch: UInt64 = 0
  private var firstOffset: UInt64 = 0
  /// Behind the last record that was read.
  private var nextOffset: UInt64 = 0
  /// Records of this process that were acknowledged since.
  private var unreadCount: UInt64 = 0
  private var nextCheck: UInt64 = 0

  init(
    _ topic: String, of keeper: any MQTTJournalKeeper, identity: String, name: String, on loop: any EventLoop,
    accept: @escaping (any ByteStream) -> Void
  ) {
    self.topic = topic
    self.keeper = keeper
    self.identity = identity
    self.name = name
    self.loop = loop
    self.accept = accept
  }

  /// Connects to the broker.
  func open() {
    guard let accept else { return }
    native = ClientSession()
    let link = DoorLink(
      self, isInternal: true, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    self.link = link
    accept(link)
  }

  /// Writes an entry, or that it has ended.
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
    unreadCount += UInt64(count)
    for (_, item) in done { item.completion() }
    readOwn()
  }

  // MARK: Records in

  private func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    var iterator = unsafe BatchIterator(batch, time: 0)
    var offset = header.firstOffset
    while let record = try? iterator.next() {
      take(record, offset)
      offset += 1
    }
    unreadCount -= min(unreadCount, offset - min(offset, nextOffset))
    nextOffset = offset
  }

  /// Reads what this process has written, once that is much.
  private func readOwn() {
    guard isLoaded, subscription == nil, nextOffset + unreadCount >= nextCheck else { return }
    subscribe()
  }

  private func take(_ record: BatchIterator.Record, _ offset: UInt64, isAgain: Bool = false) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return }
    var reader = unsafe ByteReader(attributes.payload)
    let isOwn = (try? reader.integer("process", as: UInt64.self)) == process
    if isAgain {
      unsafe keeper.foundAgain(key, reader.remaining, isOwn: isOwn, offset: offset, by: self)
    } else {
      unsafe keeper.found(key, reader.remaining, isOwn: isOwn, offset: offset)
    }
  }

  /// Reads the records before an offset again, for entries whose values the keeper doesn't have in memory.
  func readAgain(before offset: UInt64) {
    guard rereading == nil, offset > firstOffset, native.phase == .open,
      let stream = native.openSubscription(granted: Credit.unlimited)
    else { return }
    rereading = (stream, offset)
    link?.send(
      Subscribe(topic: topic, start: .offset(firstOffset), grantedThrough: Credit.unlimited), stream: stream)
  }

  private func deliverAgain(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    guard let (stream, end) = rereading else { return }
    var iterator = unsafe BatchIterator(batch, time: 0)
    var offset = header.firstOffset
    while offset < end, let record = try? iterator.next() {
      take(record, offset, isAgain: true)
      offset += 1
    }
    if offset >= end { endRereading(stream) }
  }

  private func endRereading(_ stream: UInt32) {
    if native.cancel(stream) { link?.send(Cancel(), stream: stream) }
    rereading = nil
  }

  /// Trims the topic once most of its records are out of date.
  private func shorten() {
    let (count, first) = keeper.extent
    let limit = UInt64(count) * 2 + 256
    nextCheck = nextOffset + limit / 2
    guard nextOffset - firstOffset > 2 * limit, let link else { return }
    let needed = first ?? nextOffset
    if needed > firstOffset, let request = native.phase == .open ? native.openRequest() : nil {
      link.send(TopicTrim(topic: topic, .from(needed)), stream: request)
      firstOffset = needed
    }
    guard nextOffset - needed > limit else { return }
    keeper.rewrite(before: nextOffset - limit, by: self)
  }

  // MARK: The link

  func linkStarted() {
    link?.send(Self.hello(identity, name, topic), stream: 0)
    link?.wake()
  }

  /// The HELLO of a part of the broker's program that may use one topic.
  static func hello(_ identity: String, _ name: String, _ topic: String) -> Hello {
    let rules = (try? TopicPattern(topic)).map { [Permissions.Rule(.all, on: $0)] } ?? []
    let carried = CarriedPermissions.encoded(
      Identity(name: identity, proof: .none, permissions: Permissions(rules), carriesPermissions: true))
    return Hello(
      maximumFrame: DoorLink.maximumFrame, keepalive: 0, name: name,
      credentials: .node(onBehalfOf: identity, carrying: carried ?? ""))
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
      if isLoaded { readOwn() } else { subscribe() }
      flush()
    case .acknowledged(_, let ack): acknowledged(through: ack.through)
    case .granted: flush()
    case .subscribed(let stream, let place) where stream == subscription: subscribed(place)
    case .deliver(let stream, let header, let batch) where stream == rereading?.stream:
      unsafe deliverAgain(header, batch)
    case .deliver(_, let header, let batch): unsafe deliver(header, batch)
    case .lagged(let stream, let lag) where stream == subscription: nextOffset = lag.nextOffset
    case .live(let stream, _) where stream == subscription: caughtUp(stream)
    // All that was there has been read.
    case .live(let stream, _) where stream == rereading?.stream: endRereading(stream)
    case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
    case .goAway: isStopping = true
    // An answer to TOPIC_TRIM that fails leaves the topic longer than it has to be.
    case .refused(let stream, let fault) where stream == publication || stream == subscription:
      if fault.code == .topicDeleted || fault.code == .epochChanged { epoch = 0 }
      restart()
    case .refused(let stream, _) where stream == rereading?.stream: rereading = nil
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
      PublishOpen(topic: topic, acknowledgement: .durable, settings: settings), stream: publication)
  }

  private func subscribe() {
    subscription = native.openSubscription(granted: Credit.unlimited)
    guard let subscription else { return restart() }
    // What was read once isn't read again, unless the topic is another one.
    if !isLoaded { epoch = 0 }
    let start: Subscribe.Start = epoch == 0 ? .earliest : .offset(nextOffset)
    link?.send(
      Subscribe(topic: topic, start: start, epoch: epoch, grantedThrough: Credit.unlimited),
      stream: subscription)
    link?.wake()
  }

  private func subscribed(_ place: Subscribed) {
    if epoch == 0 { (epoch, firstOffset) = (place.epoch, place.nextOffset) }
    nextOffset = place.nextOffset
    guard place.epoch != epoch else { return }
    // An operator has deleted the topic, and the offsets are those of another one.
    epoch = 0
    restart()
  }

  /// All that was in the topic has been read.
  private func caughtUp(_ stream: UInt32) {
    if native.cancel(stream) { link?.send(Cancel(), stream: stream) }
    (subscription, unreadCount) = (nil, 0)
    if !isLoaded {
      isLoaded = true
      keeper.loaded(self)
    }
    shorten()
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
    (publication, subscription, rereading, isPublishing) = (nil, nil, nil, false)
    waiting.insert(contentsOf: sent.map(\.item), at: 0)
    sent = []
    failures += 1
    guard !isStopping, failures < Self.maximumFailures else { return accept = nil }
    let delay = min(Self.firstDelay * (1 << min(failures, 10)), Self.longestDelay)
    _ = loop.schedule(after: delay) { [weak self] in self?.open() }
  }
}
