import SluiceIO
import SluiceSession
import SluiceWire

/// What follows an ``MQTTLog``. Called on the log's loop.
protocol MQTTLogReader: AnyObject {
  /// The topic that is followed is another one than before: what was read of it counts no more.
  ///
  /// - Parameter first: the offset of its oldest record; what is below was trimmed.
  func logBegan(first: UInt64)

  /// The topic goes on as another life of it: what was read counts.
  func logContinues()

  /// A record, in place.
  func logHas(_ record: BatchIterator.Record, at offset: UInt64)

  /// Records that weren't read were trimmed: the next one has that offset or a later one.
  func logSkipped(to offset: UInt64)

  /// All records that were there have been read. Called again after each interruption.
  func logIsCurrent()
}

/// A durable topic of the cluster that all nodes follow and write to: its order of records is that of all nodes.
///
/// A client of the broker, on a connection in memory, with permissions for that topic only. Records are sent again, in their order, until they have been
/// acknowledged; after an interruption some are in the topic twice. It goes on until the broker stops.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTLog: DoorLinkClient, @unchecked Sendable {
  let topic: String
  let loop: any EventLoop
  /// The name of the identity, and of the client, that the broker's lists have for it.
  private let identity: String
  private let name: String
  private let accept: (any ByteStream) -> Void
  private weak var reader: (any MQTTLogReader)?

  /// Bytes of records in one batch at most, but for one record.
  private static let longestBatch = 256 << 10
  private static let firstDelay = Duration.milliseconds(50)
  private static let longestDelay = Duration.seconds(1)

  private var link: DoorLink?
  private var native = ClientSession()
  private var publication: UInt32?
  private var subscription: UInt32?
  private var look: UInt32?
  private var isPublishing = false
  private var isStopping = false
  private var isComing = false
  private var failures = 0

  /// Records of one item each: those that aren't sent yet, and those whose acknowledgement is due, by their sequences.
  private var waiting: [[UInt8]] = []
  private var sent: [(sequence: UInt64, record: [UInt8])] = []

  /// The life of the topic that is followed; 0 before it is known.
  private(set) var epoch: UInt64 = 0
  /// Where reading goes on.
  private(set) var nextOffset: UInt64 = 0
  private(set) var firstOffset: UInt64 = 0
  private var time: Int64 = 0
  private(set) var isCurrent = false

  /// - Parameter accept: has the broker serve a connection, on `loop`.
  init(
    _ topic: String, reader: any MQTTLogReader, identity: String, name: String, on loop: any EventLoop,
    accept: @escaping (any ByteStream) -> Void
  ) {
    self.topic = topic
    self.reader = reader
    self.identity = identity
    self.name = name
    self.loop = loop
    self.accept = accept
  }

  /// The settings of such a topic: it keeps all until it is trimmed.
  static var settings: TopicSettings {
    var settings = TopicSettings(
      replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
      replayAge: TopicSettings.unlimited)
    settings.storage = .durable
    settings.sync = .always
    return settings
  }

  /// Records that were given and haven't been acknowledged.
  var unacknowledged: Int { waiting.count + sent.count }

  func open() {
    guard !isStopping else { return }
    native = ClientSession()
    let link = DoorLink(
      self, isInternal: true, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    self.link = link
    accept(link)
  }

  // MARK: Records out

  /// Writes a record: an item of a batch, see ``BatchBuilder``.
  func append(_ record: [UInt8]) {
    waiting.append(record)
    guard !isComing else { return }
    isComing = true
    _ = loop.schedule(at: loop.now) { [weak self] in
      self?.isComing = false
      self?.flush()
    }
  }

  /// Drops the records before an offset.
  func trim(before offset: UInt64) {
    guard offset > firstOffset, native.phase == .open, let request = native.openRequest() else { return }
    link?.send(TopicTrim(topic: topic, .from(offset)), stream: request)
    link?.wake()
  }

  /// Asks where the topic begins; ``logSkipped(to:)`` tells where records that were read have been trimmed.
  func lookAtFirst() {
    guard look == nil, native.phase == .open, isCurrent, let stream = native.openSubscription(granted: 0)
    else { return }
    look = stream
    link?.send(Subscribe(topic: topic, start: .earliest, ifMissing: .fail, grantedThrough: 0), stream: stream)
    link?.wake()
  }

  /// Sends what is granted.
  private func flush() {
    guard isPublishing, let publication, let link else { return }
    var done = 0
    while done < waiting.count {
      let most = Int(clamping: native.available(publication))
      let room = min(Self.longestBatch, Int(clamping: native.availableBytes(publication)))
      guard most > 0 else { break }
      var batch: [UInt8] = []
      var count = 0
      while done + count < waiting.count, count < most {
        let record = waiting[done + count]
        if count > 0, batch.count + record.count > room { break }
        batch += record
        count += 1
      }
      let sequence = native.publish(publication, count: UInt32(count), bytes: batch.count)
      unsafe batch.withUnsafeBytes { unsafe link.publish(publication, from: sequence, count: count, $0) }
      for index in 0..<count { sent.append((sequence + UInt64(index), waiting[done + index])) }
      done += count
    }
    waiting.removeFirst(done)
    link.wake()
  }

  // MARK: Records in

  private func subscribed(_ place: Subscribed) {
    if epoch == 0 {
      epoch = place.epoch
      firstOffset = place.nextOffset
      nextOffset = place.nextOffset
      reader?.logBegan(first: place.nextOffset)
    } else if place.epoch != epoch {
      guard place.continues, place.nextOffset == nextOffset else { return readAnew() }
      epoch = place.epoch
      reader?.logContinues()
    } else if place.nextOffset > nextOffset {
      skip(to: place.nextOffset)
    }
  }

  /// What was read may not be what there is.
  private func readAnew() {
    epoch = 0
    restart()
  }

  private func skip(to offset: UInt64) {
    nextOffset = max(nextOffset, offset)
    firstOffset = max(firstOffset, offset)
    reader?.logSkipped(to: offset)
  }

  private func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    var iterator = unsafe BatchIterator(batch, time: time)
    var offset = header.firstOffset
    while let record = try? iterator.next() {
      if offset >= nextOffset {
        nextOffset = offset + 1
        reader?.logHas(record, at: offset)
      }
      offset += 1
    }
    time = iterator.time
  }

  // MARK: The link

  func linkStarted() {
    link?.send(MQTTJournal.hello(identity, name, topic), stream: 0)
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
    case .acknowledged(_, let ack): sent.removeFirst(sent.prefix { $0.sequence < ack.through }.count)
    case .granted: flush()
    case .subscribed(let stream, let place) where stream == look: looked(place)
    case .subscribed(_, let place): subscribed(place)
    case .deliver(_, let header, let batch): unsafe deliver(header, batch)
    case .lagged(let stream, let lag) where stream == subscription: skip(to: lag.nextOffset)
    case .live(let stream, _) where stream == subscription:
      failures = 0
      isCurrent = true
      reader?.logIsCurrent()
    case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
    case .goAway: isStopping = true
    case .refused(let stream, _) where stream == look: look = nil
    // An answer to TOPIC_TRIM that fails leaves the topic longer than it has to be.
    case .refused(let stream, let fault) where stream == publication || stream == subscription:
      if fault.code == .topicDeleted || fault.code == .epochChanged { readAnew() } else { restart() }
    case .ended, .redirected: restart()
    default: break
    }
    return true
  }

  private func looked(_ place: Subscribed) {
    if let stream = look.take(), native.cancel(stream) { link?.send(Cancel(), stream: stream) }
    guard place.epoch == epoch, place.nextOffset > firstOffset else { return }
    firstOffset = place.nextOffset
    reader?.logSkipped(to: place.nextOffset)
  }

  private func begin() {
    publication = native.openPublication()
    guard let publication else { return restart() }
    link?.send(
      PublishOpen(topic: topic, acknowledgement: .durable, settings: Self.settings), stream: publication)
  }

  private func subscribe() {
    subscription = native.openSubscription(granted: Credit.unlimited)
    guard let subscription else { return restart() }
    let start: Subscribe.Start = epoch == 0 ? .earliest : .offset(nextOffset)
    link?.send(
      Subscribe(topic: topic, start: start, epoch: epoch, grantedThrough: Credit.unlimited),
      stream: subscription)
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
    (publication, subscription, look, isPublishing, isCurrent) = (nil, nil, nil, false, false)
    waiting.insert(contentsOf: sent.map(\.record), at: 0)
    sent = []
    guard !isStopping else { return }
    failures += 1
    let delay = min(Self.firstDelay * (1 << min(failures - 1, 10)), Self.longestDelay)
    _ = loop.schedule(after: delay) { [weak self] in
      guard let self, link == nil else { return }
      open()
    }
  }
}
