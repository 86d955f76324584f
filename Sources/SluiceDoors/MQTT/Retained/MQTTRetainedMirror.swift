import SluiceIO
import SluiceSession
import SluiceWire

/// Follows `mqtt.retained` for ``MQTTRetainedStore``: a client of the broker, on a connection in memory, with permissions for that topic only. When it begins
/// it publishes the messages of earlier processes there.
///
/// Records that aren't kept yet hold its demand back.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class MQTTRetainedMirror: DoorLinkClient, @unchecked Sendable {
  /// Records that are asked for and not kept.
  private static let window: UInt64 = 1024
  private static let firstDelay = Duration.milliseconds(100)
  private static let longestDelay = Duration.seconds(10)
  private static let maximumFailures = 30

  private unowned let store: MQTTRetainedStore
  private let loop: any EventLoop
  private let accept: (any ByteStream) -> Void
  private var link: DoorLink?
  private var native = ClientSession()
  private var publication: UInt32?
  private var subscription: UInt32?
  private var isPublishing = false
  private var isLive = false
  private var isStopping = false
  /// The broker doesn't serve the mirror: messages are in memory only.
  private var isGivenUp = false
  private var failures = 0

  /// Where the subscription is, in which life of the topic.
  private var epoch: UInt64 = 0
  private var nextOffset: UInt64 = 0
  private var time: Int64 = 0
  private var granted: UInt64 = 0
  private var delivered: UInt64 = 0
  /// Records that are on their way to the store, and up to where all are there.
  private var outstanding: UInt64 = 0
  private var keptOffset: UInt64 = 0
  private var waiting: [(offset: UInt64, body: @Sendable () -> Void)] = []
  /// What is left to publish of earlier processes.
  private var restoring: ArraySlice<BatchBuilder> = []

  init(_ store: MQTTRetainedStore, on loop: any EventLoop, accept: @escaping (any ByteStream) -> Void) {
    self.store = store
    self.loop = loop
    self.accept = accept
  }

  func open() {
    native = ClientSession()
    let link = DoorLink(
      self, isInternal: true, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    self.link = link
    accept(link)
  }

  /// Calls `body` once the record at an offset is kept, or can't be.
  func whenKept(_ offset: UInt64, _ body: @escaping @Sendable () -> Void) {
    if offset < keptOffset || isGivenUp { body() } else { waiting.append((offset, body)) }
  }

  // MARK: Records

  private func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    delivered += UInt64(header.count)
    var iterator = unsafe BatchIterator(batch, time: time)
    var offset = header.firstOffset
    while let record = try? iterator.next() {
      nextOffset = offset + 1
      put(record, offset)
      offset += 1
    }
    time = iterator.time
    progress()
  }

  private func put(_ record: BatchIterator.Record, _ offset: UInt64) {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return }
    let isWritten = unsafe store.put(key, record, isDeletion: attributes.payload.isEmpty) {
      [weak self, epoch] in
      // On the journal's loop, which is this one.
      self?.kept(offset, in: epoch)
    }
    if isWritten { outstanding += 1 }
  }

  private func kept(_ offset: UInt64, in epoch: UInt64) {
    outstanding -= 1
    if epoch == self.epoch { keptOffset = max(keptOffset, offset + 1) }
    progress()
  }

  /// Asks for more, and tells what is kept.
  private func progress() {
    if outstanding == 0 { keptOffset = max(keptOffset, nextOffset) }
    let done = waiting.filter { $0.offset < keptOffset }
    if !done.isEmpty {
      waiting.removeAll { $0.offset < keptOffset }
      for (_, body) in done { body() }
    }
    let through = delivered - min(delivered, outstanding) + Self.window
    if let subscription, isPublishing, through > granted + Self.window / 4 {
      granted = through
      if native.grant(subscription, through: through) {
        link?.send(Demand(grantedThrough: through), stream: subscription)
      }
      link?.wake()
    }
    if isLive, restoring.isEmpty, !store.isRestoring { store.restored() }
  }

  /// Publishes messages of earlier processes, as far as the broker grants.
  private func restore() {
    guard let publication, let link else { return }
    while let batch = restoring.first, native.available(publication) > 0,
      native.availableBytes(publication) > 0
    {
      restoring.removeFirst()
      let sequence = native.publish(publication, count: batch.count, bytes: batch.bytes.count)
      unsafe batch.bytes.withUnsafeBytes {
        unsafe link.publish(publication, from: sequence, count: Int(batch.count), $0)
      }
    }
    link.wake()
  }

  // MARK: The link

  func linkStarted() {
    link?.send(
      MQTTJournal.hello("mqtt-retained", "retained messages of MQTT", MQTTConnection.retainedTopic), stream: 0
    )
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
    case .granted: restore()
    case .subscribed(_, let place):
      if place.epoch != epoch { begin(epoch: place.epoch) }
      nextOffset = max(nextOffset, place.nextOffset)
    case .deliver(_, let header, let batch): unsafe deliver(header, batch)
    case .lagged(_, let lag): nextOffset = lag.nextOffset
    case .live: live()
    case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
    case .goAway: isStopping = true
    case .refused(_, let fault):
      if fault.code == .topicDeleted { store.deletedAll() }
      restart()
    case .ended: restart()
    default: break
    }
    return true
  }

  private func begin() {
    publication = native.openPublication()
    guard let publication else { return restart() }
    link?.send(
      PublishOpen(
        topic: MQTTConnection.retainedTopic, acknowledgement: .received,
        settings: MQTTConnection.retainedSettings), stream: publication)
  }

  private func subscribe() {
    (granted, delivered) = (Self.window, 0)
    subscription = native.openSubscription(granted: granted)
    guard let subscription else { return restart() }
    link?.send(
      Subscribe(
        topic: MQTTConnection.retainedTopic, start: .earliest, grantedThrough: granted), stream: subscription)
  }

  /// Another life of the topic: what was to be kept of the one before isn't there any more.
  private func begin(epoch: UInt64) {
    self.epoch = epoch
    (nextOffset, keptOffset, time) = (0, 0, 0)
    release()
  }

  private func release() {
    let bodies = waiting
    waiting = []
    for (_, body) in bodies { body() }
  }

  private func live() {
    failures = 0
    isLive = true
    restoring = store.restorable(at: loop.wallClock)[...]
    restore()
    progress()
  }

  /// Gives the connection up: another one follows.
  private func restart() {
    guard let link = link.take() else { return }
    link.end()
    lost()
  }

  func linkWritten() { link?.wake() }

  func linkDrained() {}

  func linkClosed() { lost() }

  private func lost() {
    link = nil
    (publication, subscription, isPublishing, isLive) = (nil, nil, false, false)
    restoring = []
    failures += 1
    // What isn't kept when the broker stops isn't acknowledged.
    guard !isStopping else { return waiting = [] }
    guard failures < Self.maximumFailures else {
      isGivenUp = true
      release()
      return store.restored()
    }
    let delay = min(Self.firstDelay * (1 << min(failures, 10)), Self.longestDelay)
    _ = loop.schedule(after: delay) { [weak self] in self?.open() }
  }
}
