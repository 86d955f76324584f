import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// State that few quiet connections have, and that is kept unpacked.
final class MQTTQuietExtras {
  let session: MQTTSession.Extras?
  let publishing: MQTTPublishing?
  let hold: MQTTHold?
  let progress: MQTTProgress?
  let keeping: MQTTKeeping?
  let will: MQTTConnect.Will?
  let mark: String?

  /// Nil if the connection has no such state.
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

// Packs quiet connections: see ``MQTTHandle``.
extension MQTTConnection {
  /// Connections with more streams or topics of subscriptions aren't packed: unpacking them would take long.
  private static let fewStreams = 16
  private static let fewTopics = 64

  /// Checks whether the connection had a turn since the last check. If it had none and nothing is in flight, packs it.
  ///
  /// - Returns: whether to check it again. If not, checks resume with its next turn.
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

  /// Frees memory that is reserved for further data.
  private func releaseUnused() {
    output.releaseUnused()
    link.releaseUnused()
    shares?.releaseUnused()
    if let publishing {
      for publication in publishing.byStream.values { publication.releaseUnused() }
    }
  }

  /// How many successive checks without a turn precede packing. More for a connection that was packed before, whose client sends from time to time.
  private var patience: UInt8 { wasPacked ? 20 : 0 }

  /// Whether nothing is in flight in either direction, and no timer or other object will call the connection.
  private var isQuiet: Bool {
    phase == .open && session.isQuiet && native.isQuiet && link.isQuiet && isTransportQuiet
      && output.isEmpty && unread.isEmpty && waitingRequests.isEmpty && later.isEmpty && held.isEmpty
      && fetches.isEmpty
      && pendingBytes == 0 && credit >= 0 && !hasNews && !areClosing && !isSurrendered && !isCutOff
      && requested == nil && error == nil && leaving == nil
      // On a node of a cluster its topics may move.
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
    // The timer from before CONNECT would unpack it without need.
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

  /// Restores a packed connection.
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
  /// Whether no message of the client waits to be sent or awaits an acknowledgement.
  fileprivate var isQuiet: Bool {
    copies.isEmpty && byStream.values.allSatisfy { $0.isOpen && !$0.isClosing && $0.isSettled }
      && byStream.count == publications.count + (retaining == nil ? 0 : 1)
  }
}

extension MQTTFeed {
  /// Whether it is a subscription to a pattern without waiting records.
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

  /// - Returns: the feed, and whether the next sharing of demand visits it.
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
