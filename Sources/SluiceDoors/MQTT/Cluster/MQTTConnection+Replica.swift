import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// Reads retained messages for a client from this process' copy.
final class MQTTRetainedReading {
  let messages: [MQTTRetainedReplica.Message]
  var next = 0

  init(_ messages: [MQTTRetainedReplica.Message]) {
    self.messages = messages
  }

  var isDone: Bool { next == messages.count }
}

// Retained messages on a node of a cluster. The topic's owner checks the client's permission and reports the topic's head; the messages come from this
// process' copy.
extension MQTTConnection {
  private static let retryDelay = Duration.milliseconds(100)

  /// Subscribes at the owner of the retained messages. Its answer follows every record that it has acknowledged.
  func askForRetained(_ number: UInt16) {
    guard subscriptions[number] != nil, let filter = session.filter(of: number), opensStreams,
      let stream = native.openSubscription(granted: 0)
    else { return }
    // Never delivers records; it only gets the owner's answer.
    addRetained(
      MQTTFeed(.retained(filter), number: number, stream: stream, granted: Credit.unlimited))
    link.send(
      Subscribe(topic: Self.retainedTopic, start: .earliest, ifMissing: .fail, grantedThrough: 0),
      stream: stream)
  }

  /// The owner has answered: sends the messages once the copy has reached the owner's head.
  func sendRetained(_ feed: MQTTFeed, _ place: Subscribed) {
    cancel(feed)
    guard let replica = hub.replica else { return }
    let (number, loop) = (feed.number, loop)
    replica.whenRead(place.liveOffset, of: place.epoch) {
      loop.execute { [weak self] in
        guard let self, phase == .open else { return }
        readRetained(number, place, replica)
        endTurn()
      }
    }
  }

  private func readRetained(_ number: UInt16, _ place: Subscribed, _ replica: MQTTRetainedReplica) {
    guard let part, let subscription = subscriptions[number], let filter = session.filter(of: number),
      let pattern = try? filter.brokerPatterns().last
    else { return }
    let prefix = pattern.split(separator: ".").prefix { $0 != "*" && $0 != ">" }.joined(separator: ".")
    let messages = replica.messages(
      of: filter.hasWildcards ? nil : pattern, prefix: prefix, from: place.nextOffset)
    guard !messages.isEmpty else { return }
    let feed = MQTTFeed(
      .retained(filter), number: number, stream: part.newStream(),
      granted: subscription.initialDemand)
    feed.current = topic(Self.retainedTopic, place.epoch, at: place.nextOffset)
    feed.local = MQTTRetainedReading(messages)
    addRetained(feed)
    part.localFeeds.append(feed)
  }

  /// Sends as many messages as there is demand for.
  func sendLocalFeeds() {
    guard let part, !part.localFeeds.isEmpty else { return }
    for feed in part.localFeeds { send(feed) }
    part.localFeeds.removeAll { feeds[$0.stream] !== $0 }
  }

  private func send(_ feed: MQTTFeed) {
    guard let reading = feed.local, feeds[feed.stream] === feed, let topic = feed.current else { return }
    while !reading.isDone, feed.held == 0, unsent <= Self.maximumOutput {
      if feed.outstanding == 0, !feed.isUnlimited { distribute() }
      guard feed.isUnlimited || feed.outstanding > 0 && credit > 0 else { return }
      let message = reading.messages[reading.next]
      reading.next += 1
      feed.delivered += 1
      shares?.note(feed)
      var item: [UInt8] = []
      let word = RecordLayout.word(.attributed, length: message.body.count)
      unsafe withUnsafeBytes(of: word.littleEndian) { unsafe item.append(contentsOf: $0) }
      item += message.body
      unsafe item.withUnsafeBytes { item in
        unsafe deliver(item, of: feed, topic, from: message.offset, 1, message.time)
      }
    }
    guard reading.isDone else { return }
    feed.isDone = true
    if feed.held == 0 { remove(feed) }
  }

  /// The retained messages have another owner, or temporarily none.
  func retryRetained(_ number: UInt16) {
    _ = loop.schedule(after: Self.retryDelay) { [weak self] in
      guard let self, phase == .open else { return }
      askForRetained(number)
      endTurn()
    }
  }
}
