import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// The streams of one subscription of a session: two for `parent/#`.
struct MQTTSubscriptionFeeds {
  var request: MQTTSubscriptionRequest
  var streams: [UInt32] = []
  /// Streams whose answers are awaited.
  var waiting = 0
  var hasAnswered = false
}

// Messages for the client: subscriptions to patterns, groups, retained messages, and records that are read again.
extension MQTTConnection {
  private static let positionsPerFrame = 500
  private static let noStream = MQTTError(
    .quotaExceeded, "the connection has too many streams, or the broker is about to stop")

  // MARK: Subscriptions

  func subscribe(_ request: MQTTSubscriptionRequest) {
    var resumed: [TopicPosition] = []
    var goesOn = false
    if let former = subscriptions[request.number] {
      if request.isResumed, former.hasAnswered, former.request.isUnlimited == request.isUnlimited {
        subscriptions[request.number]?.request = request
        return answer(request.number, nil)
      }
      // The kind of demand has changed, or the place: other streams go on from here.
      if request.isResumed {
        goesOn = true
        for stream in former.streams {
          for topic in feeds[stream]?.topics.values.map(\.self) ?? [] {
            guard let known = topics[topic.number] else { continue }
            resumed.append(TopicPosition(topic: known.name, epoch: known.epoch, nextOffset: topic.nextOffset))
          }
        }
      } else {
        positions[request.number] = nil
      }
      cancelFeeds(of: request.number)
    } else if request.isResumed, request.keepsCursors {
      goesOn = true
      resumed = keptPositions(of: request)
    }
    subscriptions[request.number] = MQTTSubscriptionFeeds(request: request)
    if let group = request.group { return join(request, group) }
    for pattern in request.patterns {
      let granted = request.isUnlimited ? Credit.unlimited : 0
      guard opensStreams, let stream = native.openSubscription(granted: granted, isPattern: true) else {
        return answer(request.number, Self.noStream)
      }
      add(MQTTFeed(.pattern, number: request.number, stream: stream, granted: granted))
      let parsed = try? TopicPattern(pattern)
      let positions = resumed.filter { parsed?.matches($0.topic) ?? false }
      var frame = SubscribePattern(
        pattern: pattern, start: goesOn ? .offset(0) : request.start, grantedThrough: granted)
      frame.positions = Array(positions.prefix(Self.positionsPerFrame))
      var rest = positions.dropFirst(Self.positionsPerFrame)
      frame.more = !rest.isEmpty
      link.send(frame, stream: stream)
      while !rest.isEmpty {
        let part = Array(rest.prefix(Self.positionsPerFrame))
        rest = rest.dropFirst(Self.positionsPerFrame)
        link.send(Positions(part, more: !rest.isEmpty), stream: stream)
      }
    }
  }

  /// Where a session's subscription goes on: behind what is settled, and behind what is under way and read again by itself.
  private func keptPositions(of request: MQTTSubscriptionRequest) -> [TopicPosition] {
    var offsets = positions[request.number]?.offsets ?? [:]
    for place in request.underWay {
      offsets[place.topic] = max(offsets[place.topic] ?? 0, place.offset + 1)
    }
    return offsets.compactMap { number, offset in
      topics[number].map { TopicPosition(topic: $0.name, epoch: $0.epoch, nextOffset: offset) }
    }
  }

  private func join(_ request: MQTTSubscriptionRequest, _ group: String) {
    guard request.patterns.count == 1, let topic = request.patterns.first,
      (try? TopicName.validate(topic)) != nil
    else {
      return answer(
        request.number,
        MQTTError(
          .implementationSpecific,
          "a shared subscription needs a filter without wildcards: a group belongs to one topic"))
    }
    guard opensStreams, let stream = native.openSubscription(granted: 0, isShared: true) else {
      return answer(request.number, Self.noStream)
    }
    let feed = MQTTFeed(.group, number: request.number, stream: stream, granted: 0)
    add(feed)
    link.send(
      JoinGroup(
        topic: topic, group: group, start: request.start,
        settings: JoinGroup.Settings(acknowledgement: request.isUnlimited ? .automatic : .explicit),
        grantedThrough: 0), stream: stream)
  }

  private func add(_ feed: MQTTFeed) {
    feeds[feed.stream] = feed
    subscriptions[feed.number]?.streams.append(feed.stream)
    subscriptions[feed.number]?.waiting += 1
  }

  func unsubscribe(_ number: UInt16) {
    cancelFeeds(of: number)
    subscriptions[number] = nil
    positions[number] = nil
  }

  private func cancelFeeds(of number: UInt16) {
    for feed in feeds.values where feed.number == number {
      if case .fetch = feed.role { continue }
      cancel(feed)
    }
    subscriptions[number]?.streams = []
  }

  private func cancel(_ feed: MQTTFeed) {
    feeds[feed.stream] = nil
    held.removeAll { $0.feed === feed }
    if native.cancel(feed.stream) { link.send(Cancel(), stream: feed.stream) }
  }

  private func answer(_ number: UInt16, _ error: MQTTError?) {
    if error != nil {
      cancelFeeds(of: number)
      subscriptions[number] = nil
    }
    play { session, output, perform in session.subscribed(number, error, output: &output, perform) }
  }

  func settle(_ number: UInt16, _ place: MQTTPlace) {
    guard let stream = subscriptions[number]?.streams.first, let feed = feeds[stream], !feed.isUnlimited
    else {
      return
    }
    let delivery = feed.deliveries.removeValue(forKey: place.offset) ?? 1
    link.send(Settle(.done, delivery: delivery, firstOffset: place.offset, count: 1), stream: stream)
  }

  // MARK: What the broker says

  func subscribed(_ stream: UInt32, _ place: Subscribed) {
    guard let feed = feeds[stream] else { return }
    feed.isOpen = true
    switch feed.role {
    case .pattern: streamOpened(feed)
    case .group:
      guard let name = subscriptions[feed.number]?.request.patterns.first else { return }
      feed.current = topic(name, place.epoch, at: place.nextOffset)
      streamOpened(feed)
    case .retained:
      feed.current = topic(Self.retainedTopic, place.epoch, at: place.nextOffset)
    case .fetch(let packetID, let wanted):
      guard let known = topics[wanted.topic], place.epoch == known.epoch, place.nextOffset == wanted.offset
      else {
        cancel(feed)
        return fetched(packetID, nil)
      }
      feed.current = MQTTFeedTopic(number: wanted.topic, brokerName: known.name, nextOffset: wanted.offset)
    }
  }

  private func streamOpened(_ feed: MQTTFeed) {
    guard subscriptions[feed.number]?.hasAnswered == false else { return }
    subscriptions[feed.number]?.waiting -= 1
    guard subscriptions[feed.number]?.waiting == 0 else { return }
    subscriptions[feed.number]?.hasAnswered = true
    answer(feed.number, nil)
  }

  /// A topic as places of the session name it.
  private func topic(_ name: String, _ epoch: UInt64, at offset: UInt64) -> MQTTFeedTopic {
    let known = MQTTKnownTopic(name: name, epoch: epoch)
    let number: UInt32
    if let former = numbers[known] {
      number = former
    } else {
      lastTopic += 1
      number = lastTopic
      numbers[known] = number
      topics[number] = known
    }
    return MQTTFeedTopic(number: number, brokerName: name, nextOffset: offset)
  }

  func matched(_ stream: UInt32, _ matched: Matched) {
    guard let feed = feeds[stream] else { return }
    let topic = topic(matched.topic, matched.place.epoch, at: matched.place.nextOffset)
    feed.topics[matched.number] = topic
    guard isLasting, subscriptions[feed.number]?.request.keepsCursors == true,
      positions[feed.number]?.offsets[topic.number] == nil
    else { return }
    positions[feed.number, default: MQTTPositions()].offsets[topic.number] = matched.place.nextOffset
  }

  func unmatched(_ stream: UInt32, _ number: UInt32) {
    guard let feed = feeds[stream], let topic = feed.topics.removeValue(forKey: number) else { return }
    positions[feed.number]?.offsets[topic.number] = nil
  }

  func topicEnded(_ stream: UInt32, _ ending: Complete.Ending) {
    guard let feed = feeds[stream], let name = feed.current?.text else { return }
    var failure: (code: UInt32, message: String)?
    if case .failure(let code, let message) = ending { failure = (code.rawValue, message) }
    session.topicEnded(name, on: feed.number, failure: failure, output: &output)
  }

  func live(_ stream: UInt32) {
    guard let feed = feeds[stream], case .retained = feed.role else { return }
    feed.isDone = true
    if feed.held == 0 { cancel(feed) }
  }

  func streamEnded(_ stream: UInt32, _ ending: Complete.Ending) {
    if case .group = feeds[stream]?.role { topicEnded(stream, ending) }
    var message = "the topic has ended"
    if case .failure(_, let why) = ending { message += ": \(why)" }
    streamRefused(stream, WireError(.topicEnded, message))
  }

  func streamRefused(_ stream: UInt32, _ error: WireError) {
    let told = MQTTError(MQTTReason(error.code), error.message)
    if publicationEnded(stream, told) { return }
    guard let feed = feeds.removeValue(forKey: stream) else { return }
    held.removeAll { $0.feed === feed }
    switch feed.role {
    case .fetch(let packetID, _): fetched(packetID, nil)
    case .retained: break
    case .pattern, .group:
      guard subscriptions[feed.number]?.hasAnswered == false else { return }
      answer(feed.number, told)
    }
  }

  // MARK: Records

  func deliver(_ stream: UInt32, _ header: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    guard let feed = feeds[stream] else { return }
    feed.delivered += UInt64(header.count)
    guard let topic = feed.current else { return }
    if feed.held > 0 { return unsafe hold(feed, topic, header.firstOffset, topic.time, feed.delivery, batch) }
    unsafe deliver(batch, of: feed, topic, from: header.firstOffset, feed.delivery, topic.time)
  }

  /// Whether no more records are taken before the client has read.
  var isHeldByOutput: Bool { held.first.map { $0.feed.isUnlimited || credit > 0 } ?? false }

  private func hold(
    _ feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64, _ time: Int64, _ delivery: UInt32,
    _ batch: UnsafeRawBufferPointer
  ) {
    guard unsafe !batch.isEmpty else { return }
    feed.held += 1
    held.append(
      MQTTHeldBatch(
        feed: feed, topic: topic, firstOffset: offset, delivery: delivery, time: time,
        bytes: unsafe Array(batch)))
  }

  private func deliver(
    _ batch: UnsafeRawBufferPointer, of feed: MQTTFeed, _ topic: MQTTFeedTopic, from offset: UInt64,
    _ delivery: UInt32, _ time: Int64
  ) {
    let wallClock = loop.wallClock
    var iterator = unsafe BatchIterator(batch, time: time)
    var offset = offset
    var rest = unsafe batch
    while true {
      if output.count > Self.maximumOutput || !feed.isUnlimited && credit == 0 {
        topic.time = iterator.time
        return unsafe hold(feed, topic, offset, iterator.time, delivery, rest)
      }
      // The broker's batches are in order.
      guard let record = try? iterator.next() else { break }
      deliver(record, of: feed, topic, offset, delivery, wallClock)
      offset += 1
      topic.nextOffset = offset
      let end = unsafe record.body.baseAddress.map { unsafe $0 + record.body.count }
      if let end = unsafe end, let base = batch.baseAddress {
        unsafe rest = UnsafeRawBufferPointer(rebasing: batch[(end - base)...])
      }
    }
    topic.time = iterator.time
  }

  private func deliver(
    _ record: BatchIterator.Record, of feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64,
    _ delivery: UInt32, _ wallClock: Int64
  ) {
    switch feed.role {
    case .pattern, .group:
      guard topic.text != nil else { return pass(feed, topic, offset) }
      if !feed.isUnlimited { credit -= 1 }
      if delivery != 1 { feed.deliveries[offset] = delivery }
      session.deliver(
        unsafe MQTTRecord(
          topic: topic.name, place: MQTTPlace(topic: topic.number, offset: offset), time: record.time,
          isAttributed: record.isAttributed, body: record.body, isOwn: marksOwn && isOwn(record)),
        on: feed.number, time: wallClock, output: &output)
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

  private func isOwn(_ record: BatchIterator.Record) -> Bool {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body) else {
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

  /// A record that isn't for the client costs no demand: the feed may have another.
  private func pass(_ feed: MQTTFeed, _ topic: MQTTFeedTopic, _ offset: UInt64) {
    guard !feed.isUnlimited else { return }
    grant(1, to: feed)
  }

  /// The topic of a retained message, as MQTT writes it: the record's key has the broker's name.
  private func retainedName(_ record: BatchIterator.Record) -> String? {
    guard record.isAttributed, let attributes = try? unsafe RecordAttributes(record.body),
      let key = unsafe attributes.key
    else { return nil }
    return unsafe MQTTTopicName.name(ofBroker: String(decoding: key, as: UTF8.self))
  }

  /// Delivers what was held, as far as there are room and demand.
  func drainHeld() {
    guard !held.isEmpty else { return }
    let batches = held
    held = []
    for batch in batches {
      batch.feed.held -= 1
      // What was held again stands before what follows of the same feed.
      if batch.feed.held > 0 && held.contains(where: { $0.feed === batch.feed }) {
        held.append(batch)
        batch.feed.held += 1
        continue
      }
      unsafe batch.bytes.withUnsafeBytes {
        unsafe deliver(
          $0, of: batch.feed, batch.topic, from: batch.firstOffset, batch.delivery, batch.time)
      }
      if batch.feed.isDone, batch.feed.held == 0 { cancel(batch.feed) }
    }
  }

  // MARK: Demand

  /// Shares what the session asks for among its subscriptions: each has an equal part, and a part is left for the next one.
  func distribute() {
    let sharing = feeds.values.filter { feed in
      if case .fetch = feed.role { return false }
      return !feed.isUnlimited && feed.held == 0
    }
    guard !sharing.isEmpty else { return }
    var free = credit
    for feed in feeds.values {
      if case .fetch = feed.role { continue }
      free -= feed.outstanding
    }
    let share = max(1, credit / (sharing.count + 1))
    for feed in sharing where feed.outstanding * 2 <= share || feed.outstanding == 0 {
      // One that has none gets one, whatever the others have: where the demand is used up by then, its record waits.
      let count = max(min(share - feed.outstanding, free), feed.outstanding == 0 && credit > 0 ? 1 : 0)
      guard count > 0 else { continue }
      free -= count
      grant(count, to: feed)
    }
  }

  private func grant(_ count: Int, to feed: MQTTFeed) {
    feed.granted += UInt64(count)
    if native.grant(feed.stream, through: feed.granted) {
      link.send(Demand(grantedThrough: feed.granted), stream: feed.stream)
    }
  }

  // MARK: Retained messages, and records that are read again

  func sendRetained(_ number: UInt16) {
    guard let request = subscriptions[number]?.request, let filter = session.filter(of: number) else {
      return
    }
    let granted = request.isUnlimited ? Credit.unlimited : 0
    guard opensStreams, let stream = native.openSubscription(granted: granted) else { return }
    feeds[stream] = MQTTFeed(.retained(filter), number: number, stream: stream, granted: granted)
    // The keys are the broker's names: those that begin with the tokens before the first wildcard.
    var conditions: [RecordFilter.Condition] = []
    if let pattern = request.patterns.last {
      let literal = pattern.split(separator: ".").prefix { $0 != "*" && $0 != ">" }.joined(separator: ".")
      let test: RecordFilter.Test =
        filter.hasWildcards ? .hasPrefix(Array(literal.utf8)) : .equals(Array(pattern.utf8))
      if !literal.isEmpty { conditions = [RecordFilter.Condition(.key, test)] }
    }
    link.send(
      Subscribe(
        topic: Self.retainedTopic, start: .earliest, ifMissing: .fail, grantedThrough: granted,
        filter: RecordFilter(conditions)), stream: stream)
  }

  func fetch(_ packetID: UInt16, _ place: MQTTPlace) {
    guard opensStreams, let known = topics[place.topic], let stream = native.openSubscription(granted: 1)
    else {
      return fetched(packetID, nil)
    }
    feeds[stream] = MQTTFeed(.fetch(packetID, place), number: 0, stream: stream, granted: Credit.unlimited)
    link.send(
      Subscribe(
        topic: known.name, start: .offset(place.offset), ifMissing: .fail, epoch: known.epoch,
        grantedThrough: 1), stream: stream)
  }

  private func fetched(_ packetID: UInt16, _ record: MQTTRecord?) {
    session.fetched(packetID, record, time: loop.wallClock, output: &output)
  }
}
