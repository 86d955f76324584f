import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// What a connection has at a node of a cluster only.
final class MQTTClusterPart {
  /// Retained messages from this process' copy that are on their way to the client.
  var localFeeds: [MQTTFeed] = []
  /// Numbers for what has no stream of the broker.
  private var lastStream = MQTTClusterPart.firstStream

  private static let firstStream: UInt32 = 1 << 31

  /// A number that no stream of the broker has.
  func newStream() -> UInt32 {
    lastStream += 1
    return lastStream
  }
}

// Topics that another node serves from now on. The broker repeats nothing: streams end, and are opened again here, where they were.
extension MQTTConnection {
  static let moveDelay = Duration.milliseconds(50)

  /// A stream has ended since its topic has moved.
  ///
  /// - Returns: whether it goes on; otherwise its end is the end of what it was for.
  func moved(_ stream: UInt32) -> Bool {
    guard part != nil, phase == .open, let feed = feeds[stream] else { return false }
    switch feed.role {
    // The broker goes on with them by itself.
    case .pattern, .watch: return false
    case .group: rejoin(feed)
    case .retained:
      remove(feed)
      retryRetained(feed.number)
    case .fetch(let packetID, let place):
      remove(feed)
      again { $0.fetch(packetID, place) }
    }
    return true
  }

  private func again(_ body: @escaping (MQTTConnection) -> Void) {
    _ = loop.schedule(after: Self.moveDelay) { [weak self] in
      guard let self, phase == .open else { return }
      body(self)
      runLater()
      endTurn()
    }
  }

  private func rejoin(_ feed: MQTTFeed) {
    remove(feed)
    held.removeAll { $0.feed === feed }
    subscriptions[feed.number]?.streams.removeAll { $0 == feed.stream }
    if !feed.isOpen, subscriptions[feed.number]?.hasAnswered == false {
      subscriptions[feed.number]?.waiting -= 1
    }
    again { connection in
      guard let subscription = connection.subscriptions[feed.number],
        let group = connection.session.filter(of: feed.number)?.group,
        let topic = feed.joined ?? connection.patterns(of: feed.number).first
      else { return }
      let granted = subscription.initialDemand
      guard connection.opensStreams,
        let stream = connection.native.openSubscription(granted: granted, isShared: true)
      else { return }
      let member = MQTTFeed(.group, number: feed.number, stream: stream, granted: granted)
      member.joined = feed.joined
      connection.add(member)
      connection.join(stream, topic, group, subscription, start: subscription.start)
    }
  }

  /// The session is another connection's, or may be: the node was taken for gone. Nothing more is kept of it here.
  func loseSession() {
    guard phase == .open else { return }
    isSurrendered = true
    play { session, output, perform in
      session.close(
        .serverBusy, "the other nodes took this one for gone; connect again", output: &output, perform)
    }
    endTurn()
  }
}
