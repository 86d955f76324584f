import SluiceSession
import SluiceWire

extension ServerAction {
  /// Opens the requested stream at the other node.
  func pass(
    _ target: RoutedAction, over link: NodeLink, on streams: StreamMultiplexer, for relay: NodeRelay
  ) {
    let (stream, topic) = (target.stream, target.topic)
    func begin<Stream: ServerStream>(_ relayed: Stream, _ begin: (Stream) -> Void) {
      streams.attach(relayed, to: stream)
      begin(relayed)
    }
    func request(_ frame: some Frame) {
      begin(RelayedRequest(stream, topic: topic, link: link, on: streams)) { $0.begin(frame) }
    }
    func subscription(_ granted: UInt64, _ frame: Subscribe?) -> RelayedSubscription {
      RelayedSubscription(stream, topic: topic, granted: granted, frame, link: link, on: streams, for: relay)
    }
    switch self {
    case .subscribe(_, let frame): begin(subscription(frame.grantedThrough, frame)) { $0.begin(frame) }
    case .join(_, let frame): begin(subscription(frame.grantedThrough, nil)) { $0.begin(frame) }
    case .openPublication(_, let frame):
      begin(RelayedPublication(stream, topic: topic, link: link, on: streams)) { $0.begin(frame) }
    case .createTopic(_, let frame): request(frame)
    case .showTopic: request(TopicShow(topic: topic))
    case .deleteTopic: request(TopicDelete(topic: topic))
    case .connectTopic(_, _, let isConnected):
      if isConnected { request(TopicConnect(topic: topic)) } else { request(TopicDisconnect(topic: topic)) }
    case .listCursors(_, _, let after, let limit):
      request(CursorList(topic: topic, after: after, limit: limit))
    case .moveCursor(_, let frame): request(frame)
    case .deleteCursor(_, _, let name): request(CursorDelete(topic: topic, name: name))
    case .setTopic(_, let frame): request(frame)
    case .trimTopic(_, let frame): request(frame)
    case .listStates(_, let frame): request(frame)
    case .restoreStates(_, let frame): request(frame)
    default: break
    }
  }
}
