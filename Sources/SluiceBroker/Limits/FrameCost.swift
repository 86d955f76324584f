import SluiceWire

/// The cost of a frame in steps of ``WorkBudget``.
///
/// ``table`` has a cost for each frame that clients may send; a test compares it with the frame table. Work whose amount isn't known in advance is
/// charged as it is found, and stops when the turn's budget is exhausted, to continue in the connection's next turn.
struct FrameCost: Hashable, Sendable {
  /// Work whose amount isn't known before it is done.
  enum Work: CaseIterable, Sendable {
    /// Names of topics searched for a pattern or a page.
    case names
    /// Positions with which a pattern's subscription resumes: read, and entered in its table.
    case positions
    /// Topics that a pattern's subscription joins.
    case joins
    /// Topics that a pattern's subscription leaves.
    case departures
    /// Subscriptions to patterns that are notified of a new topic.
    case watchers
    /// Topics with paced producers that are notified when a pattern's subscription requests more.
    case pacedTopics
    /// Records of a group in flight that are searched.
    case groupRecords
    /// Durable cursors and groups searched for a page.
    case cursors
    /// Subscriptions and publications searched for a description.
    case attachments

    /// How many units make one step. A power of two.
    var perStep: Int {
      switch self {
      case .joins, .departures: 1
      case .watchers, .attachments, .positions: 2
      case .names, .cursors, .pacedTopics: 4
      case .groupRecords: 8
      }
    }
  }

  /// Steps for handling the frame, regardless of the result. With 0 only the number of frames and the bytes read per turn limit it.
  var steps: Int
  /// The kinds of work that are charged as the amount is found.
  var found: Set<Work> = []

  init(_ steps: Int, _ found: Work...) {
    self.steps = steps
    self.found = Set(found)
  }

  static let table: [FrameType: FrameCost] = [
    .hello: FrameCost(1),
    .authenticate: FrameCost(1),
    .ping: FrameCost(0),
    .pong: FrameCost(0),
    .error: FrameCost(0),

    // Records: bounded by bytes.
    .publish: FrameCost(0),
    .positions: FrameCost(0, .positions),
    .origin: FrameCost(0),

    .subscribe: FrameCost(1, .watchers),
    .subscribePattern: FrameCost(4, .names, .joins, .positions),
    .joinGroup: FrameCost(1, .watchers),
    .publishOpen: FrameCost(1, .watchers),
    .demand: FrameCost(0, .pacedTopics),
    .lend: FrameCost(0, .pacedTopics),
    .settle: FrameCost(0, .groupRecords),
    .commit: FrameCost(0),
    .cancel: FrameCost(1, .departures, .groupRecords),
    .complete: FrameCost(4),

    .topicCreate: FrameCost(4, .watchers, .attachments),
    .topicShow: FrameCost(4, .attachments),
    .topicList: FrameCost(16, .names),
    .topicDelete: FrameCost(4),
    .topicConnect: FrameCost(4, .watchers),
    .topicDisconnect: FrameCost(4, .watchers),
    .cursorList: FrameCost(16, .cursors),
    .cursorMove: FrameCost(4),
    .cursorDelete: FrameCost(4),
    .topicSet: FrameCost(4, .attachments),
    .topicTrim: FrameCost(4, .attachments),
    .stateList: FrameCost(16, .cursors),
    .stateRestore: FrameCost(16, .cursors),
    .connectionList: FrameCost(16, .attachments),
    .connectionClose: FrameCost(4),
    .brokerShow: FrameCost(16, .names),
    .clusterShow: FrameCost(16),
    .clusterDrain: FrameCost(4),
    .clusterMove: FrameCost(4),
  ]

  private static let stepsByType: [UInt8] = (UInt8.min...UInt8.max).map { number in
    UInt8(table[FrameType(rawValue: number)]?.steps ?? 1)
  }

  /// The steps for handling a frame of that type. An array, since this is called for each frame and a dictionary would be slower.
  static func steps(for type: FrameType) -> Int { Int(stepsByType[Int(type.rawValue)]) }
}
