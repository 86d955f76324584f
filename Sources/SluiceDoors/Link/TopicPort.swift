import SluiceIO
import SluiceSession
import SluiceWire

/// A client of one topic within the broker's program: it publishes, reads, or does both, on a connection in memory.
///
/// The port resends records in order until they are acknowledged: after an interruption some may be in the topic twice. A producer ID prevents that.
/// Reading resumes at the next offset. The port reconnects until it is refused permanently, it is closed, or the broker stops.
// @unchecked: belongs to `loop`. Other threads use it only through jobs on that loop.
final class TopicPort: DoorLinkClient, @unchecked Sendable {
  let terms: Terms
  let loop: any EventLoop
  private let accept: (any ByteStream) -> Void
  private weak var user: (any TopicPortUser)?

  private static let firstDelay = Duration.milliseconds(50)
  private static let longestDelay = Duration.seconds(1)
  /// How many successive connections the broker may close without accepting one; after that it counts as stopped.
  private static let mostUnserved = 30

  private var link: DoorLink?
  private var native = ClientSession()
  private var publication: UInt32?
  private var subscription: UInt32?
  private var look: UInt32?
  private var deletion: (stream: UInt32?, body: () -> Void)?
  private var isPublishing = false
  private var isReading: Bool
  private var isStopping = false
  private var isComing = false
  private var failures = 0
  private var unserved = 0

  private var outbox = TopicPortOutbox()

  /// The epoch of the topic that the port reads; 0 before it is known.
  private(set) var epoch: UInt64 = 0
  /// The offset at which reading resumes.
  private(set) var nextOffset: UInt64 = 0
  private(set) var firstOffset: UInt64 = 0
  private var time: Int64 = 0
  private(set) var isCurrent = false

  /// - Parameter accept: passes a connection to the broker, on `loop`.
  init(
    _ terms: Terms, user: any TopicPortUser, on loop: any EventLoop,
    accept: @escaping (any ByteStream) -> Void
  ) {
    self.terms = terms
    isReading = terms.reads
    self.user = user
    self.loop = loop
    self.accept = accept
  }

  /// The number of records that aren't acknowledged.
  var unacknowledged: Int { outbox.count }

  func open() {
    guard !isStopping else { return }
    native = ClientSession()
    let link = DoorLink(
      self, isInternal: true, peer: .door(.mqtt, "127.0.0.1", port: 0, isSecure: false), on: loop)
    self.link = link
    accept(link)
  }

  /// Ends the port. Its user isn't called after this.
  func close() {
    user = nil
    isStopping = true
    link.take()?.end()
  }

  /// Stops reading. ``nextOffset`` then stays at the offset after the last record that the port has read.
  func stopReading() {
    isReading = false
    guard let subscription = subscription.take(), native.cancel(subscription) else { return }
    link?.send(Cancel(), stream: subscription)
    link?.wake()
  }

  // MARK: Records out

  /// Publishes a record: an item of a batch, see ``BatchBuilder``.
  func append(_ record: [UInt8]) {
    outbox.append(record)
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
    link?.send(TopicTrim(topic: terms.topic, .from(offset)), stream: request)
    link?.wake()
  }

  /// Looks up the topic's floor, and calls ``TopicPortUser/portSkipped(to:)`` if records that the port has read were trimmed.
  func lookAtFirst() {
    guard look == nil, native.phase == .open, isCurrent, let stream = native.openSubscription(granted: 0)
    else { return }
    look = stream
    link?.send(
      Subscribe(topic: terms.topic, start: .earliest, ifMissing: .fail, grantedThrough: 0), stream: stream)
    link?.wake()
  }

  /// Deletes the topic, then calls `body`.
  func delete(_ body: @escaping () -> Void) {
    deletion = (nil, body)
    stopReading()
    sendDeletion()
  }

  private func sendDeletion() {
    guard deletion != nil, native.phase == .open, let stream = native.openRequest() else { return }
    deletion?.stream = stream
    link?.send(TopicDelete(topic: terms.topic), stream: stream)
    link?.wake()
  }

  /// Sends as many records as are granted.
  private func flush() {
    guard isPublishing, let publication, let link else { return }
    while let (batch, count) = outbox.next(
      atMost: Int(clamping: native.available(publication)),
      bytes: Int(clamping: native.availableBytes(publication)))
    {
      let sequence = native.publish(publication, count: UInt32(count), bytes: batch.count)
      unsafe batch.withUnsafeBytes { unsafe link.publish(publication, from: sequence, count: count, $0) }
      outbox.sent(count, from: sequence)
    }
    link.wake()
  }

  private func acknowledged(_ ack: Ack) {
    let count = outbox.acknowledged(through: ack.through)
    guard count > 0 else { return }
    if !isReading { nextOffset = max(nextOffset, ack.lastOffset + 1) }
    user?.portStored(count)
  }

  /// The publication is open. With a producer ID, records before its next sequence are already in the topic.
  private func publicationOpened(_ frame: PublishOpened) {
    isPublishing = true
    if terms.producer != 0 {
      let count = outbox.known(before: frame.nextSequence)
      if count > 0 { user?.portStored(count) }
    }
    flush()
    if isReading { return subscribe() }
    failures = 0
    if epoch != 0, frame.epoch != epoch {
      (epoch, firstOffset, nextOffset) = (frame.epoch, 0, 0)
      user?.portBegan(first: 0)
    }
    user?.portIsCurrent()
  }

  // MARK: Records in

  private func subscribed(_ place: Subscribed) {
    if epoch == 0 {
      epoch = place.epoch
      firstOffset = place.nextOffset
      nextOffset = place.nextOffset
      user?.portBegan(first: place.nextOffset)
    } else if place.epoch != epoch {
      guard place.continues, place.nextOffset == nextOffset else { return readAnew() }
      epoch = place.epoch
      user?.portContinues()
    } else if place.nextOffset > nextOffset {
      skip(to: place.nextOffset)
    }
  }

  /// Reads the topic from its start, since the records that were read may no longer be those in the topic.
  private func readAnew() {
    epoch = 0
    restart()
  }

  private func skip(to offset: UInt64) {
    nextOffset = max(nextOffset, offset)
    firstOffset = max(firstOffset, offset)
    user?.portSkipped(to: offset)
  }

  private func deliver(_ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    var iterator = unsafe BatchIterator(batch, time: time)
    var offset = header.firstOffset
    while let record = try? iterator.next() {
      if offset >= nextOffset {
        nextOffset = offset + 1
        user?.portHas(record, at: offset)
      }
      offset += 1
    }
    time = iterator.time
  }

  // MARK: The link

  func linkStarted() {
    link?.send(terms.hello, stream: 0)
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
    case .publicationOpened(_, let frame): publicationOpened(frame)
    case .acknowledged(_, let ack): acknowledged(ack)
    case .granted: flush()
    case .subscribed(let stream, let place) where stream == look: looked(place)
    case .subscribed(_, let place): subscribed(place)
    case .deliver(_, let header, let batch): unsafe deliver(header, batch)
    case .lagged(let stream, let lag) where stream == subscription: skip(to: lag.nextOffset)
    case .live(let stream, _) where stream == subscription:
      failures = 0
      isCurrent = true
      user?.portIsCurrent()
    case .done(let stream) where stream == deletion?.stream: deletion.take()?.body()
    case .answerPing(let token): link?.send(Pong(token: token), stream: 0)
    case .goAway: isStopping = true
    case .failed(let fault) where terms.isFinal(fault.code): end(fault.code)
    case .refused(let stream, _) where stream == look: look = nil
    // If TOPIC_TRIM is refused, the topic only stays longer than necessary.
    case .refused(let stream, let fault)
    where stream == publication || stream == subscription || stream == deletion?.stream:
      refused(fault.code)
    case .ended, .redirected: restart()
    default: break
    }
    return true
  }

  private func refused(_ code: ErrorCode) {
    if terms.isFinal(code) { return end(code) }
    if isReading, code == .topicDeleted || code == .epochChanged { readAnew() } else { restart() }
  }

  private func looked(_ place: Subscribed) {
    if let stream = look.take(), native.cancel(stream) { link?.send(Cancel(), stream: stream) }
    guard place.epoch == epoch, place.nextOffset > firstOffset else { return }
    firstOffset = place.nextOffset
    user?.portSkipped(to: place.nextOffset)
  }

  private func begin() {
    unserved = 0
    guard let settings = terms.settings else {
      if deletion == nil { subscribe() } else { sendDeletion() }
      return
    }
    publication = native.openPublication()
    guard let publication else { return restart() }
    link?.send(
      PublishOpen(
        topic: terms.topic, acknowledgement: terms.acknowledgement, producer: terms.producer,
        settings: settings),
      stream: publication)
  }

  private func subscribe() {
    subscription = native.openSubscription(granted: Credit.unlimited)
    guard let subscription else { return restart() }
    let start: Subscribe.Start = epoch == 0 ? .earliest : .offset(nextOffset)
    link?.send(
      Subscribe(
        topic: terms.topic, start: start, ifMissing: terms.settings == nil ? .fail : .create, epoch: epoch,
        grantedThrough: Credit.unlimited), stream: subscription)
  }

  /// Closes the connection and opens another one.
  private func restart() {
    guard let link = link.take() else { return }
    link.end()
    lost()
  }

  private func end(_ code: ErrorCode) {
    let user = user
    close()
    user?.portEnded(code)
  }

  func linkWritten() { link?.wake() }

  func linkDrained() { flush() }

  func linkClosed() {
    unserved += 1
    lost()
  }

  /// The connection is lost: unacknowledged records are sent again on the next one.
  private func lost() {
    link = nil
    (publication, subscription, look, isPublishing, isCurrent) = (nil, nil, nil, false, false)
    deletion?.stream = nil
    outbox.lost()
    guard !isStopping, unserved < Self.mostUnserved else { return end(.shuttingDown) }
    failures += 1
    let delay = min(Self.firstDelay * (1 << min(failures - 1, 10)), Self.longestDelay)
    _ = loop.schedule(after: delay) { [weak self] in
      guard let self, link == nil else { return }
      open()
    }
  }
}
