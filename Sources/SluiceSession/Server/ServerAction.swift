import SluiceWire

/// The request of a frame to the broker, after the session has checked it.
@safe
package enum ServerAction {
  /// Nothing.
  case none

  // Records: the most frequent action.
  /// Append a checked batch to the topic of a publication, whose producer waits for its acknowledgement or doesn't.
  case append(stream: UInt32, count: UInt32, batch: UnsafeRawBufferPointer, isAwaited: Bool = true)
  /// A subscription may be sent more.
  case demand(stream: UInt32, grantedThrough: UInt64)

  /// The subscriber with a durable cursor has come that far.
  case commit(stream: UInt32, nextOffset: UInt64)

  // Streams
  /// The handshake is complete: send WELCOME.
  indirect case welcome(ServerHandshake.Agreement)
  /// The client has sent credentials: WELCOME waits until they are verified, see ``ServerSession/admitted()``.
  indirect case authenticate(ServerHandshake.Agreement)
  indirect case subscribe(stream: UInt32, Subscribe)
  indirect case subscribePattern(stream: UInt32, SubscribePattern)
  /// Positions of a long frame are to be read, a part in each turn, by ``ServerSession/goOn(_:_:atMost:_:)``.
  indirect case readPositions(stream: UInt32, PositionsReader, filter: RecordFilter)
  /// So many positions, and a filter, have come for a subscription to a pattern that begins with a later frame.
  indirect case openingPattern(stream: UInt32, positions: [TopicPosition], filter: RecordFilter)
  indirect case join(stream: UInt32, JoinGroup)
  /// A node of the cluster may be sent so much of a subscription to a pattern.
  case lend(stream: UInt32, Lend)
  /// A member says what became of records.
  indirect case settle(stream: UInt32, Settle)
  indirect case openPublication(stream: UInt32, PublishOpen)
  /// End the topic of a publication, then answer CANCELLED.
  indirect case complete(stream: UInt32, Complete.Ending)
  /// Drop a subscription or publication, then answer CANCELLED.
  case cancel(stream: UInt32)
  /// CANCEL for a stream that had ended before it came: answer CANCELLED.
  case confirmCancel(stream: UInt32)
  /// The peer's mistake has ended the stream: release its state and send ERROR.
  indirect case fault(stream: UInt32, Fault)

  // Requests
  indirect case createTopic(stream: UInt32, TopicCreate)
  case showTopic(stream: UInt32, topic: String)
  case listTopics(stream: UInt32, after: String, limit: UInt32)
  case deleteTopic(stream: UInt32, topic: String)
  case connectTopic(stream: UInt32, topic: String, isConnected: Bool)
  case listCursors(stream: UInt32, topic: String, after: String, limit: UInt32)
  indirect case moveCursor(stream: UInt32, CursorMove)
  case deleteCursor(stream: UInt32, topic: String, name: String)
  indirect case setTopic(stream: UInt32, TopicSet)
  indirect case trimTopic(stream: UInt32, TopicTrim)
  indirect case listStates(stream: UInt32, StateList)
  indirect case restoreStates(stream: UInt32, StateRestore)
  case listConnections(stream: UInt32, after: UInt64, limit: UInt32)
  case closeConnection(stream: UInt32, connection: UInt64)
  case showBroker(stream: UInt32)
  indirect case showCluster(stream: UInt32, ClusterShow)
  indirect case drainNode(stream: UInt32, ClusterDrain)
  indirect case moveShard(stream: UInt32, ClusterMove)

  // The connection
  /// Verify new credentials, then say so: ``ServerSession/renewed()``.
  indirect case renew(stream: UInt32, Credentials)
  case pong(token: UInt64)

  /// The stream of a request, which its answer ends; nil for what isn't one.
  package var requestNumber: UInt32? {
    switch self {
    case .createTopic(let stream, _), .showTopic(let stream, _), .listTopics(let stream, _, _),
      .deleteTopic(let stream, _), .connectTopic(let stream, _, _), .listCursors(let stream, _, _, _),
      .moveCursor(let stream, _), .deleteCursor(let stream, _, _), .renew(let stream, _),
      .setTopic(let stream, _), .trimTopic(let stream, _), .listConnections(let stream, _, _),
      .closeConnection(let stream, _), .showBroker(let stream), .showCluster(let stream, _),
      .drainNode(let stream, _), .moveShard(let stream, _), .listStates(let stream, _),
      .restoreStates(let stream, _):
      stream
    default: nil
    }
  }

  /// Whether it is more than a heartbeat, or than a frequent frame on an open stream.
  package var isRequest: Bool {
    switch self {
    case .none, .pong, .append, .demand, .commit, .lend: false
    default: true
    }
  }
}
