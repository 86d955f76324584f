import SluiceWire

/// The frames that open a stream: a subscription, a publication or a request.
enum OpeningFrame {
  /// The effects of a frame that opens a stream, and its request to the broker.
  static func read(
    _ stream: UInt32, _ type: FrameType, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> (ServerStreamTable.State, ServerAction) {
    switch type {
    case .subscribe:
      let frame = try unsafe admit(Subscribe.self, body)
      return (.subscription(grantedThrough: frame.grantedThrough), .subscribe(stream: stream, frame))
    case .joinGroup:
      let frame = try unsafe admit(JoinGroup.self, body)
      return (.subscription(grantedThrough: frame.grantedThrough), .join(stream: stream, frame))
    case .publishOpen:
      // The topic decides about the grant.
      let frame = try unsafe admit(PublishOpen.self, body)
      let credit = PublicationCredit(startingAt: frame.firstSequence)
      return (.publication(credit), .openPublication(stream: stream, frame))
    case .subscribePattern where body.count > PositionsReader.longBody:
      var (frame, positions) = try unsafe SubscribePattern.long(body)
      try frame.validateNames()
      frame.more = true
      return (.opening(frame), .readPositions(stream: stream, positions, filter: frame.filter))
    case .subscribePattern:
      let frame = try unsafe admit(SubscribePattern.self, body)
      if frame.more {
        let action = ServerAction.openingPattern(
          stream: stream, positions: frame.positions, filter: frame.filter)
        return (.opening(frame), action)
      }
      return (.subscription(grantedThrough: frame.grantedThrough), .subscribePattern(stream: stream, frame))
    default: return (.request, try unsafe request(stream, type, body))
    }
  }

  private static func request(
    _ stream: UInt32, _ type: FrameType, _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> ServerAction {
    switch type {
    case .topicCreate: return unsafe .createTopic(stream: stream, try admit(TopicCreate.self, body))
    case .topicShow: return unsafe .showTopic(stream: stream, topic: try admit(TopicShow.self, body).topic)
    case .topicList:
      let page = try unsafe admit(TopicList.self, body)
      return .listTopics(stream: stream, after: page.after, limit: page.limit)
    case .topicDelete:
      return unsafe .deleteTopic(stream: stream, topic: try admit(TopicDelete.self, body).topic)
    case .topicConnect:
      let topic = try unsafe admit(TopicConnect.self, body).topic
      return .connectTopic(stream: stream, topic: topic, isConnected: true)
    case .topicDisconnect:
      let topic = try unsafe admit(TopicDisconnect.self, body).topic
      return .connectTopic(stream: stream, topic: topic, isConnected: false)
    case .cursorList:
      let page = try unsafe admit(CursorList.self, body)
      return .listCursors(stream: stream, topic: page.topic, after: page.after, limit: page.limit)
    case .cursorMove: return unsafe .moveCursor(stream: stream, try admit(CursorMove.self, body))
    case .cursorDelete:
      let frame = try unsafe admit(CursorDelete.self, body)
      return .deleteCursor(stream: stream, topic: frame.topic, name: frame.name)
    case .topicSet: return unsafe .setTopic(stream: stream, try admit(TopicSet.self, body))
    case .topicTrim: return unsafe .trimTopic(stream: stream, try admit(TopicTrim.self, body))
    case .stateList: return unsafe .listStates(stream: stream, try admit(StateList.self, body))
    case .stateRestore: return unsafe .restoreStates(stream: stream, try admit(StateRestore.self, body))
    case .connectionList:
      let page = try unsafe admit(ConnectionList.self, body)
      return .listConnections(stream: stream, after: page.after, limit: page.limit)
    case .connectionClose:
      let frame = try unsafe admit(ConnectionClose.self, body)
      return .closeConnection(stream: stream, connection: frame.connection)
    case .brokerShow:
      _ = try unsafe admit(BrokerShow.self, body)
      return .showBroker(stream: stream)
    case .clusterShow: return unsafe .showCluster(stream: stream, try admit(ClusterShow.self, body))
    case .clusterDrain: return unsafe .drainNode(stream: stream, try admit(ClusterDrain.self, body))
    case .clusterMove: return unsafe .moveShard(stream: stream, try admit(ClusterMove.self, body))
    case .authenticate: return unsafe .renew(stream: stream, try admit(Authenticate.self, body).credentials)
    default: preconditionFailure("\(type) opens no stream")
    }
  }

  /// Decodes a frame and checks the names in it: the one place where names that clients send are admitted.
  ///
  /// - Throws: the mistake in the frame; ``ErrorCode/invalidTopic`` for a name, which ends its stream only.
  private static func admit<F: Frame>(_ type: F.Type, _ body: UnsafeRawBufferPointer) throws(WireError) -> F {
    let frame = try unsafe F(body: body)
    try frame.validateNames()
    return frame
  }
}
