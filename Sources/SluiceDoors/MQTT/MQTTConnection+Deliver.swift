import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Records for the client, and its demand.
extension MQTTConnection {
  func deliver(_ stream: UInt32, _ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    guard let feed = feeds[stream] else { return }
    feed.delivered += UInt64(header.count)
    shares?.note(feed)
    guard let topic = feed.current else { return }
    if feed.held > 0 { return unsafe hold(feed, topic, header.firstOffset, topic.time, feed.delivery, batch) }
    unsafe deliver(batch, of: feed, topic, from: header.firstOffset, feed.delivery, topic.time)
  }

  /// Whether records wait because the client must read first.
  var isHeldByOutput: Bool { held.first.map { $0.feed.isUnlimited || credit > 0 } ?? false }

  func hold(
    _ feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64, _ time: Int64, _ delivery: UInt32,
    _ batch: UnsafeRawBufferPointer
  ) {
    guard unsafe !batch.isEmpty else { return }
    feed.held += 1
    shares?.note(feed)
    held.append(
      MQTTHeldBatch(
        feed: feed, topic: topic, firstOffset: offset, delivery: delivery, time: time,
        bytes: unsafe Array(batch)))
  }

  func deliver(
    _ batch: UnsafeRawBufferPointer, of feed: MQTTFeed, _ topic: MQTTFeedTopic, from offset: UInt64,
    _ delivery: UInt32, _ time: Int64
  ) {
    let wallClock = loop.wallClock
    let room = Self.maximumOutput - (keeping?.heldBytes ?? 0)
    let isUnlimited = feed.isUnlimited
    let areMessages = feed.role.hasMessages && topic.isNamed
    var iterator = unsafe BatchIterator(batch, time: time)
    var offset = offset
    var rest = unsafe batch
    while true {
      if output.count > room || !isUnlimited && credit == 0 {
        topic.time = iterator.time
        return unsafe hold(feed, topic, offset, iterator.time, delivery, rest)
      }
      // The broker's batches are in order.
      guard let record = try? iterator.next() else { break }
      if areMessages {
        send(record, of: feed, topic, offset, delivery, wallClock)
      } else {
        deliver(record, of: feed, topic, offset, wallClock)
      }
      offset += 1
      topic.nextOffset = offset
      let end = unsafe record.body.baseAddress.map { unsafe $0 + record.body.count }
      if let end = unsafe end, let base = batch.baseAddress {
        unsafe rest = UnsafeRawBufferPointer(rebasing: batch[(end - base)...])
      }
    }
    topic.time = iterator.time
  }

  /// Passes a record that is a message of a subscription's topic to the session.
  @inline(__always)
  private func send(
    _ record: BatchIterator.Record, of feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64,
    _ delivery: UInt32, _ wallClock: Int64
  ) {
    if !feed.isUnlimited { credit -= 1 }
    if delivery != 1 { feed.deliveries[offset] = delivery }
    session.deliver(
      unsafe MQTTRecord(
        topic: topic.name, place: MQTTPlace(topic: topic.number, offset: offset), time: record.time,
        isAttributed: record.isAttributed, body: record.body, isOwn: marksOwn && isOwn(record)),
      on: feed.number, time: wallClock, output: &output)
  }

  /// Handles a record of a feed without messages.
  private func deliver(
    _ record: BatchIterator.Record, of feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64,
    _ wallClock: Int64
  ) {
    switch feed.role {
    case .watch: return
    // The topic is hidden from the client.
    case .pattern, .group: pass(feed, topic, offset)
    case .retained(let filter):
      guard let name = retainedName(record), filter.matches(name) else { return pass(feed, topic, offset) }
      if !feed.isUnlimited { credit -= 1 }
      unsafe Array(name.utf8).withUnsafeBytes { name in
        session.deliver(
          unsafe MQTTRecord(
            topic: name, place: MQTTPlace(topic: topic.number, offset: offset), time: record.time,
            isAttributed: record.isAttributed, body: record.body, isRetained: true), on: feed.number,
          time: wallClock, output: &output)
      }
    case .fetch(let packetID, let place):
      cancel(feed)
      guard offset == place.offset else { return fetched(packetID, nil) }
      let isRetained = topics[place.topic]?.name == Self.retainedTopic
      guard let name = isRetained ? retainedName(record) : topic.text else { return fetched(packetID, nil) }
      unsafe Array(name.utf8).withUnsafeBytes { name in
        let again = unsafe MQTTRecord(
          topic: name, place: place, time: record.time, isAttributed: record.isAttributed, body: record.body,
          isRetained: isRetained)
        fetched(packetID, again)
      }
    }
  }

  // Not inlined: otherwise the optimiser would read the mark, with a check of overlapping accesses, for messages that don't need it.
  @inline(never)
  func isOwn(_ record: BatchIterator.Record) -> Bool {
    guard let mark, record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body) else {
      return false
    }
    var isOwn = false
    unsafe attributes.forEachHeader { name, value in
      if unsafe name.elementsEqual(Self.publisherHeader.utf8), unsafe value.elementsEqual(mark.utf8) {
        isOwn = true
      }
    }
    return isOwn
  }

  /// Skips a record that isn't for the client. It uses no demand: the feed may have another record.
  func pass(_ feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64) {
    guard !feed.isUnlimited else { return }
    grant(1, to: feed)
  }

  /// The topic of a retained message in MQTT's form; the record's key is the broker's name of it.
  func retainedName(_ record: BatchIterator.Record) -> String? {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return nil }
    let name = unsafe String(decoding: key, as: UTF8.self)
    return mayRead(name) && !Self.isHidden(name) ? MQTTTopicName.name(ofBroker: name) : nil
  }

  /// Delivers held batches as far as room and demand allow.
  func drainHeld() {
    guard !held.isEmpty else { return }
    let batches = held
    held = []
    for batch in batches {
      batch.feed.held -= 1
      // A batch that is held again precedes the next ones of the same feed.
      if batch.feed.held > 0 && held.contains(where: { $0.feed === batch.feed }) {
        held.append(batch)
        batch.feed.held += 1
        continue
      }
      unsafe batch.bytes.withUnsafeBytes {
        unsafe deliver(
          $0, of: batch.feed, batch.topic, from: batch.firstOffset, batch.delivery, batch.time)
      }
      shares?.note(batch.feed)
      if batch.feed.isDone, batch.feed.held == 0 { cancel(batch.feed) }
    }
  }

  // MARK: Demand

  /// Shares the session's demand among its subscriptions.
  func distribute() {
    guard let shares, shares.begin(credit) else { return }
    while let (feed, count) = shares.next() { grant(count, to: feed) }
  }

  func grant(_ count: Int, to feed: MQTTFeed) {
    feed.granted += UInt64(count)
    shares?.note(feed)
    guard feed.local == nil else { return }
    if native.grant(feed.stream, through: feed.granted) {
      link.send(Demand(grantedThrough: feed.granted), stream: feed.stream)
    }
  }
}
