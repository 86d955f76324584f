import SluiceSession
import SluiceWire

/// The topic and stream of an action that opens a stream or sends a request.
struct RoutedAction {
  var stream: UInt32
  var topic: String
  /// The type of the frame, by which permissions are checked.
  var verb: FrameType
  var kind = StreamKind.request
  /// The topic of a group's dead letters; empty for none.
  var deadLetters = ""
  /// Whether the client sends settings of the topic.
  var statesSettings = false
  /// Whether it begins at a position that the topic's owner stores. A former owner may have an older position.
  var beginsAtKeptPlace = false
}

extension ServerAction {
  /// Nil for actions that aren't about a single topic, and for those of open streams.
  var routed: RoutedAction? {
    switch self {
    case .subscribe(let stream, let frame):
      RoutedAction(
        stream: stream, topic: frame.topic, verb: .subscribe, kind: .subscription,
        statesSettings: frame.settings != TopicSettings(),
        beginsAtKeptPlace: !frame.cursor.isEmpty && frame.epoch == 0)
    case .join(let stream, let frame):
      RoutedAction(
        stream: stream, topic: frame.topic, verb: .joinGroup, kind: .subscription,
        deadLetters: frame.settings.deadLetters, beginsAtKeptPlace: true)
    case .openPublication(let stream, let frame):
      RoutedAction(
        stream: stream, topic: frame.topic, verb: .publishOpen, kind: .publication,
        statesSettings: frame.settings != TopicSettings())
    case .createTopic(let stream, let frame):
      RoutedAction(stream: stream, topic: frame.topic, verb: .topicCreate)
    case .showTopic(let stream, let topic): RoutedAction(stream: stream, topic: topic, verb: .topicShow)
    case .deleteTopic(let stream, let topic): RoutedAction(stream: stream, topic: topic, verb: .topicDelete)
    case .connectTopic(let stream, let topic, let isConnected):
      RoutedAction(stream: stream, topic: topic, verb: isConnected ? .topicConnect : .topicDisconnect)
    case .listCursors(let stream, let topic, _, _):
      RoutedAction(stream: stream, topic: topic, verb: .cursorList)
    case .moveCursor(let stream, let frame):
      RoutedAction(stream: stream, topic: frame.topic, verb: .cursorMove)
    case .deleteCursor(let stream, let topic, _):
      RoutedAction(stream: stream, topic: topic, verb: .cursorDelete)
    case .setTopic(let stream, let frame): RoutedAction(stream: stream, topic: frame.topic, verb: .topicSet)
    case .trimTopic(let stream, let frame): RoutedAction(stream: stream, topic: frame.topic, verb: .topicTrim)
    case .listStates(let stream, let frame):
      RoutedAction(stream: stream, topic: frame.topic, verb: .stateList)
    case .restoreStates(let stream, let frame):
      RoutedAction(stream: stream, topic: frame.topic, verb: .stateRestore)
    case .none, .append, .demand, .commit, .lend, .welcome, .authenticate, .subscribePattern,
      .openingPattern, .readPositions, .settle, .complete, .cancel, .confirmCancel, .fault, .listTopics,
      .listConnections, .closeConnection,
      .showBroker, .showCluster, .drainNode, .moveShard, .renew, .pong:
      nil
    }
  }

  /// Replaces the demand of a subscription before it begins.
  mutating func raise(to granted: UInt64) {
    switch self {
    case .subscribe(let stream, var frame):
      frame.grantedThrough = granted
      self = .subscribe(stream: stream, frame)
    case .subscribePattern(let stream, var frame):
      frame.grantedThrough = granted
      self = .subscribePattern(stream: stream, frame)
    case .join(let stream, var frame):
      frame.grantedThrough = granted
      self = .join(stream: stream, frame)
    default: break
    }
  }
}

extension ConnectedClient {
  /// Checks the permissions for the action, without a look-up of the topic. The node that serves the topic repeats this check, together with those that need
  /// the topic.
  ///
  /// - Throws: ``ErrorCode/permissionDenied``.
  func require(_ action: RoutedAction) throws(WireError) {
    try require(action.verb, on: action.topic)
    if action.statesSettings { try require(.topicCreate, on: action.topic) }
    if !action.deadLetters.isEmpty { try require(.publishOpen, on: action.deadLetters) }
  }
}
