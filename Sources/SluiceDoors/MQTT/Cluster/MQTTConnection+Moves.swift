import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// State of a connection that is needed only on a node of a cluster.
final class MQTTClusterPart {
  /// Feeds that send retained messages from this process' copy to the client.
  var localFeeds: [MQTTFeed] = []
  /// The last number for a feed without a stream of the broker.
  private var lastStream = MQTTClusterPart.firstStream

  private static let firstStream: UInt32 = 1 << 31

  /// Returns a number that no stream of the broker has.
  func newStream() -> UInt32 {
    lastStream += 1
    return lastStream
  }
}

// Handles topics that move to another node. The broker then ends their streams, and the connection opens them again at the same position.
extension MQTTConnection {
  static let moveDelay = Duration.milliseconds(50)

  /// Handles the end of a stream whose topic has moved.
  ///
  /// - Returns: whether the connection reopens the stream; otherwise its end is final.
  func moved(_ stream: UInt32) -> Bool {
    guard part != nil, phase == .open, let feed = feeds[stream] else { return false }
    switch feed.role {
    // The broker continues these streams itself.
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

  /// The session belongs to another connection, or may: the other nodes have declared this process dead. The connection stores no more of the session.
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
