import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// What few quiet connections have, and is kept as it is.
final class MQTTQuietExtras {
  let session: MQTTSession.Extras?
  let publishing: MQTTPublishing?
  let hold: MQTTHold?
  let progress: MQTTProgress?
  let keeping: MQTTKeeping?
  let will: MQTTConnect.Will?
  let mark: String?

  /// Nil where there is nothing of that.
  fileprivate init?(_ connection: MQTTConnection) {
    session = connection.session.extras
    publishing = connection.publishing
    hold = connection.hold
    progress = connection.progress
    keeping = connection.keeping
    will = connection.will
    mark = connection.mark
    if session == nil, publishing == nil, hold == nil, progress == nil, keeping == nil, will == nil,
      mark == nil
    {
      return nil
    }
  }
}

// A connection on which nothing happens: see ``MQTTHandle``.
extension MQTTConnection {
  /// Subscriptions' streams and topics beyond that number aren't packed: their connection would take long to be made again.
  private static let fewStreams = 16
  private static let fewTopics = 64

  /// Looks whether it has had a turn since it was last looked at, and packs it if it hadn't, and nothing is under way.
  ///
  /// - Returns: whether to look at it again. Otherwise it is watched again from its next turn on.
  func staysActive() -> Bool {
    if phase == .open, hadTurn || quietLooks < patience {
      quietLooks = hadTurn ? 0 : quietLooks + 1
      hadTurn = false
      return true
    }
    isWatched = false
    if phase == .open { releaseUnused() }
    if isQuiet { rest() }
    return false
  }

  /// Returns the memory that is kept for what is to come.
  private func releaseUnused() {
    output.releaseUnused()
    link.releaseUnused()
    shares?.releaseUnused()
    if let publishing {
      for publication in publishing.byStream.values { publication.releaseUnused() }
    }
  }

  /// How many looks in a row find nothing new before it is packed: more for one that was packed before, whose client goes on from time to time.
  private var patience: UInt8 { wasPacked ? 20 : 0 }

  /// Whether nothing is under way in either direction, and nothing outside of this object is bound to call it.
  private var isQuiet: Bool {
    phase == .open && session.isQuiet && native.isQuiet && link.isQuiet && isTransportQuiet
      && output.isEmpty && unread.isEmpty && waitingRequests.isEmpty && later.isEmpty && held.isEmpty
      && fetches.isEmpty
      && pendingBytes == 0 && credit >= 0 && !hasNews && !areClosing && !isSurrendered && !isCutOff
      && requested == nil && error == nil && leaving == nil
      // At a node of a cluster its topics may move.
      && part == nil && system == nil && keeping?.isIdle ?? true && publishing?.isQuiet ?? true
      && areSubscriptionsQuiet
  }

  private var areSubscriptionsQuiet: Bool {
    let (all, subscriptions) = (feeds.values, subscriptions.values)
    guard all.count <= Self.fewStreams, all.reduce(0, { $0 + $1.topics.count }) <= Self.fewTopics else {
      return false
    }
    return all.allSatisfy(\.isQuiet)
      && subscriptions.reduce(0) { $0 + $1.streams.count } == all.count
      && subscriptions.allSatisfy { subscription in
        subscription.hasAnswered && subscription.waiting == 0 && subscription.retained.isEmpty
          && subscription.streams.allSatisfy { feeds[$0]?.isUnlimited == subscription.isUnlimited }
      }
  }

  private func rest() {
    // The one from before CONNECT would wake it for nothing.
    if !wasPacked {
      loop.cancel(&handle.timer)
      if let deadline = session.deadline { handle.wake(at: MonotonicTime(nanoseconds: deadline)) }
    }
    var writer = PackedWriter()
    session.pack(into: &writer)
    native.pack(into: &writer)
    writer.text(key?.identity ?? "")
    writer.flags(isLasting, marksOwn)
    writer.number(maximumFrame)
    writer.number(credit)
    topics.pack(into: &writer)
    writer.number(subscriptions.count)
    for number in subscriptions.keys {
      guard let subscription = subscriptions[number] else { continue }
      writer.number(number)
      writer.flags(subscription.isUnlimited, subscription.keepsCursors)
      writer.start(subscription.start)
      writer.number(subscription.streams.count)
      for stream in subscription.streams { feeds[stream]?.pack(into: &writer) }
    }
    handle.rest(writer.bytes, MQTTQuietExtras(self))
  }

  /// A connection that is as the one that was packed.
  convenience init(_ handle: MQTTHandle, unpacking packed: [UInt8], _ extras: MQTTQuietExtras?) {
    var reader = PackedReader(packed)
    let session = MQTTSession(handle.shared.rules, unpacking: &reader, extras?.session)
    self.init(handle, session)
    native = ClientSession(unpacking: &reader, now: handle.loop.now.nanoseconds)
    let identity = reader.text()
    key = MQTTHub.Key(identity: identity, clientID: session.clientID)
    let flags = reader.flags()
    goOn(marksOwn: flags[1], mark: extras?.mark)
    wasPacked = true
    counted = session.subscriptionCount
    isLasting = flags[0]
    maximumFrame = reader.number()
    credit = reader.number()
    topics = MQTTTopicTable(unpacking: &reader)
    for _ in 0..<reader.number(Int.self) {
      let number: UInt16 = reader.number()
      let flags = reader.flags()
      var subscription = MQTTSubscriptionFeeds(
        isUnlimited: flags[0], keepsCursors: flags[1], start: reader.start())
      subscription.hasAnswered = true
      for _ in 0..<reader.number(Int.self) {
        let (feed, isWaiting) = MQTTFeed.unpacked(
          &reader, of: number, isUnlimited: subscription.isUnlimited, topics)
        subscription.streams.append(feed.stream)
        feeds[feed.stream] = feed
        if !feed.isUnlimited { madeShares().restore(feed, isWaiting: isWaiting) }
      }
      subscriptions[number] = subscription
    }
    guard let extras else { return }
    (publishing, hold, progress) = (extras.publishing, extras.hold, extras.progress)
    (keeping, will) = (extras.keeping, extras.will)
  }
}

extension MQTTPublishing {
  /// Whether nothing of what the client has published waits, or has an acknowledgement that is awaited.
  fileprivate var isQuiet: Bool {
    copies.isEmpty && byStream.values.allSatisfy { $0.isOpen && !$0.isClosing && $0.isSettled }
      && byStream.count == publications.count + (retaining == nil ? 0 : 1)
  }
}

extension MQTTFeed {
  /// Whether it is a subscription to a pattern of which nothing waits.
  fileprivate var isQuiet: Bool {
    guard case .pattern = role else { return false }
    return isOpen && held == 0 && deliveries.isEmpty && joined == nil && local == nil
  }

  fileprivate func pack(into writer: inout PackedWriter) {
    writer.number(stream)
    if !isUnlimited { writer.number(granted) }
    writer.number(delivered)
    writer.flags(isWaiting)
    writer.number(topics.count)
    var selected: UInt32 = 0
    for number in topics.keys {
      guard let topic = topics[number] else { continue }
      if topic === current { selected = number }
      writer.number(number)
      writer.number(topic.number)
      writer.number(topic.nextOffset)
      writer.number(UInt64(bitPattern: topic.time))
    }
    if !topics.isEmpty { writer.number(selected) }
  }

  /// - Returns: the feed, and whether the shares look at it next.
  fileprivate static func unpacked(
    _ reader: inout PackedReader, of number: UInt16, isUnlimited: Bool, _ known: MQTTTopicTable
  ) -> (MQTTFeed, isWaiting: Bool) {
    let stream: UInt32 = reader.number()
    let granted = isUnlimited ? Credit.unlimited : reader.number()
    let feed = MQTTFeed(.pattern, number: number, stream: stream, granted: granted)
    feed.isOpen = true
    feed.delivered = reader.number()
    let isWaiting = reader.flags()[0]
    for _ in 0..<reader.number(Int.self) {
      let (place, number, offset) = (
        reader.number(UInt32.self), reader.number(UInt32.self), reader.number(UInt64.self)
      )
      let topic = MQTTConnection.topic(known[number]?.name ?? "", number, at: offset)
      topic.time = Int64(bitPattern: reader.number())
      feed.topics[place] = topic
    }
    if !feed.topics.isEmpty { feed.current = feed.topics[reader.number()] }
    return (feed, isWaiting)
  }
}
