import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Maps subscriptions of the session to streams of the broker.
extension MQTTConnection {
  static let positionsPerFrame = 500
  static let noStream = MQTTError(
    .quotaExceeded, "the connection has too many streams, or the broker is about to stop")

  func begin(_ request: MQTTSubscriptionRequest) {
    let number = request.number
    guard mayHave(request) else { return answer(number, Self.unreadable) }
    if isLasting, !request.isResumed, subscriptions[number] == nil, let key,
      !hub.hasRoom(for: key, growing: true)
    {
      return answer(number, Self.noRoom)
    }
    var subscription = MQTTSubscriptionFeeds(request)
    if let former = subscriptions[number] {
      if request.isResumed, former.isUnlimited == request.isUnlimited {
        subscriptions[number]?.keepsCursors = request.keepsCursors
        if former.hasAnswered { subscriptions[number]?.start = request.start }
        // Otherwise its streams are being opened, and their answers become this one's.
        return former.hasAnswered ? answer(number, nil) : ()
      }
      // The kind of demand or the position has changed: new streams continue from here.
      if request.isResumed {
        subscription.goOn(as: former, at: positions(of: former))
      } else {
        progress?.positions[number] = nil
      }
      cancelFeeds(of: number)
    } else if request.isResumed {
      subscription.stands = true
      if request.keepsCursors { subscription.resumed = keptPositions(of: request) }
    }
    subscriptions[number] = subscription
    openStreams(of: number)
  }

  /// Opens the streams of a subscription without any.
  func openStreams(of number: UInt16) {
    guard let subscription = subscriptions[number], let filter = session.filter(of: number) else { return }
    let patterns = patterns(of: number)
    if let group = filter.group { return join(number, patterns, group, subscription) }
    for pattern in patterns {
      let granted = subscription.initialDemand
      guard opensStreams, let stream = native.openSubscription(granted: granted, isPattern: true) else {
        return refused(number, Self.noStream, isPassing: true)
      }
      add(MQTTFeed(.pattern, number: number, stream: stream, granted: granted))
      let parsed = try? TopicPattern(pattern)
      let positions = (subscription.resumed ?? []).filter { parsed?.matches($0.topic) ?? false }
      var frame = SubscribePattern(
        pattern: pattern, start: subscription.resumed == nil ? subscription.start : .offset(0),
        grantedThrough: granted)
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

  /// The broker's patterns of a subscription.
  func patterns(of number: UInt16) -> [String] {
    (try? session.filter(of: number)?.brokerPatterns()) ?? []
  }

  /// Returns the positions at which a session's subscription resumes: after the acknowledged records, and after those in flight, which are read again
  /// separately.
  func keptPositions(of request: MQTTSubscriptionRequest) -> [TopicPosition] {
    var offsets = progress?.positions[request.number]?.offsets ?? [:]
    for place in request.underWay {
      offsets[place.topic] = max(offsets[place.topic] ?? 0, place.offset + 1)
    }
    return offsets.compactMap { number, offset in
      topics[number].map { TopicPosition(topic: $0.name, epoch: $0.epoch, nextOffset: offset) }
    }
  }

  /// The positions of a subscription in its topics.
  func positions(of subscription: MQTTSubscriptionFeeds) -> [TopicPosition] {
    var positions: [TopicPosition] = []
    for stream in subscription.streams {
      for topic in feeds[stream]?.topics.values ?? [] {
        guard let known = topics[topic.number] else { continue }
        positions.append(TopicPosition(topic: known.name, epoch: known.epoch, nextOffset: topic.nextOffset))
      }
    }
    let names = Set(positions.map(\.topic))
    return positions + (subscription.resumed ?? []).filter { !names.contains($0.topic) }
  }

  // Adding or removing a feed also updates the shares of the session's demand.

  func insert(_ feed: MQTTFeed) {
    feeds[feed.stream] = feed
    guard !feed.isUnlimited else { return }
    madeShares().add(feed)
  }

  func madeShares() -> MQTTShares {
    if let shares { return shares }
    let made = MQTTShares()
    shares = made
    return made
  }

  func remove(_ feed: MQTTFeed) {
    feeds[feed.stream] = nil
    shares?.remove(feed)
    guard case .retained = feed.role, let retained = subscriptions[feed.number]?.retained else { return }
    subscriptions[feed.number]?.retained = retained.filter { $0 != feed.stream }
  }

  func removeFeeds() {
    feeds = ShortTable()
    fetches = []
    shares?.removeAll()
    shares = nil
  }

  func add(_ feed: MQTTFeed) {
    insert(feed)
    subscriptions[feed.number]?.streams.append(feed.stream)
    subscriptions[feed.number]?.waiting += 1
  }

  /// Adds the stream of a subscription's retained messages.
  func addRetained(_ feed: MQTTFeed) {
    insert(feed)
    subscriptions[feed.number]?.retained.append(feed.stream)
  }

  func unsubscribe(_ number: UInt16) {
    waitingRequests.removeAll { $0.request.number == number }
    cancelFeeds(of: number)
    subscriptions[number] = nil
    progress?.positions[number] = nil
  }

  func cancelFeeds(of number: UInt16) {
    guard let subscription = subscriptions[number] else { return }
    for stream in subscription.streams + subscription.retained {
      if let feed = feeds[stream] { cancel(feed) }
    }
    subscriptions[number]?.streams = []
    subscriptions[number]?.retained = []
  }

  func cancel(_ feed: MQTTFeed) {
    remove(feed)
    if feed.held > 0 { held.removeAll { $0.feed === feed } }
    if native.cancel(feed.stream) { link.send(Cancel(), stream: feed.stream) }
  }

  func answer(_ number: UInt16, _ error: MQTTError?) {
    if error != nil {
      cancelFeeds(of: number)
      subscriptions[number] = nil
    }
    play { session, output, perform in session.subscribed(number, error, output: &output, perform) }
  }

  func settle(_ number: UInt16, _ place: MQTTPlace) {
    for stream in subscriptions[number]?.streams ?? [] {
      guard let feed = feeds[stream], feed.current?.number == place.topic else { continue }
      let delivery = feed.deliveries.removeValue(forKey: place.offset) ?? 1
      return link.send(
        Settle(.acknowledge, delivery: delivery, firstOffset: place.offset, count: 1), stream: stream)
    }
  }

  // MARK: What the broker says

  func subscribed(_ stream: UInt32, _ place: Subscribed) {
    guard let feed = feeds[stream] else { return }
    feed.isOpen = true
    switch feed.role {
    case .pattern: streamOpened(feed)
    case .watch: break
    case .group:
      guard let name = feed.joined ?? patterns(of: feed.number).first else { return }
      feed.current = topic(name, place.epoch, at: place.nextOffset)
      streamOpened(feed)
    case .retained where part != nil: sendRetained(feed, place)
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

  func streamOpened(_ feed: MQTTFeed) {
    guard subscriptions[feed.number]?.hasAnswered == false else { return }
    subscriptions[feed.number]?.waiting -= 1
    guard subscriptions[feed.number]?.waiting == 0 else { return }
    subscriptions[feed.number]?.hasAnswered = true
    subscriptions[feed.number]?.stands = true
    subscriptions[feed.number]?.trial = nil
    subscriptions[feed.number]?.resumed = nil
    // SUBACK waits until the positions are stored at which the subscription would resume.
    if subscriptions[feed.number]?.keepsCursors == true { keeping?.want() }
    answer(feed.number, nil)
    follow(feed.number, sendsPresent: false)
  }

  /// Returns a topic with the number that the session's positions use.
  func topic(_ name: String, _ epoch: UInt64, at offset: UInt64) -> MQTTFeedTopic {
    Self.topic(name, topics.number(of: MQTTKnownTopic(name: name, epoch: epoch)), at: offset)
  }

  static func topic(_ name: String, _ number: UInt32, at offset: UInt64) -> MQTTFeedTopic {
    // Wildcards don't select the gateway's own topics: each message creates records there, which would become messages in turn.
    MQTTFeedTopic(number: number, brokerName: isHidden(name) ? "" : name, nextOffset: offset)
  }

  static func isHidden(_ name: String) -> Bool {
    MQTTSystemTopic.isReserved(broker: name) || name == retainedTopic || name == MQTTRosterLog.topic
      || name == MQTTFormerRetained.topic
  }

  func matched(_ stream: UInt32, _ matched: Matched) {
    guard let feed = feeds[stream] else { return }
    if case .watch = feed.role { return watched(feed, matched) }
    let number = topics.number(of: MQTTKnownTopic(name: matched.topic, epoch: matched.place.epoch))
    let isSeen = session.filter(of: feed.number)?.isFor(broker: matched.topic) ?? true
    let topic = Self.topic(isSeen ? matched.topic : "", number, at: matched.place.nextOffset)
    feed.topics[matched.number] = topic
    guard isLasting, let progress, topic.isNamed, subscriptions[feed.number]?.keepsCursors == true,
      progress.positions[feed.number]?.offsets[topic.number] == nil
    else { return }
    progress.positions[feed.number, default: MQTTPositions()].offsets[topic.number] = matched.place.nextOffset
  }

  /// Sets the topic of the frames that follow; without one they concern the whole subscription.
  func selected(_ stream: UInt32, _ number: UInt32) {
    guard let feed = feeds[stream] else { return }
    feed.current = feed.topics[number]
    guard number == 0, case .watch = feed.role, !feed.hasBegun else { return }
    feed.hasBegun = true
    streamOpened(feed)
  }

  func unmatched(_ stream: UInt32, _ number: UInt32) {
    guard let feed = feeds[stream], let topic = feed.topics.removeValue(forKey: number) else { return }
    progress?.positions[feed.number]?.offsets[topic.number] = nil
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
    if waits(stream, error) || error.code == .topicMoved && moved(stream) { return }
    let told = MQTTError(MQTTReason(error.code), error.message)
    if publicationEnded(stream, told) { return }
    guard let feed = feeds[stream] else { return }
    switch feed.role {
    case .pattern, .watch: return refused(feed.number, told, isPassing: error.code.isPassing)
    case .group where feed.joined == nil && subscriptions[feed.number]?.hasAnswered == false:
      return refused(feed.number, told, isPassing: error.code.isPassing)
    default: break
    }
    remove(feed)
    held.removeAll { $0.feed === feed }
    switch feed.role {
    case .fetch(let packetID, _): fetched(packetID, nil)
    // A selected topic may refuse the group; the other topics are shared nevertheless.
    case .group where feed.joined != nil: streamOpened(feed)
    case .group, .pattern, .watch, .retained: break
    }
  }
}
