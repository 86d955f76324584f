/// How much work a connection has made in one turn, so that whoever floods the broker with requests waits for himself: the rest of
/// what he sent is for the next turn, and others have theirs in between.
///
/// Counted in steps of about a microsecond or a few. What is about records isn't counted: it is bounded by the bytes that a turn reads. Frames
/// are, whatever they are about: of the smallest there are tens of thousands in those bytes.
struct Effort {
  /// What a connection may have in one turn, some milliseconds of work.
  static let limit = 1_024

  /// Frames that are taken up in one turn. Those with records in them don't come to as many.
  static let frameLimit = 4_096

  private(set) var spent = 0
  private var frames = 0

  /// There is no more of it in this turn.
  var isExhausted: Bool { spent >= Self.limit || frames >= Self.frameLimit }

  /// A frame was taken up, or passed over.
  mutating func tookFrame() { frames &+= 1 }

  mutating func spend(_ steps: Int) {
    let sum = spent.addingReportingOverflow(steps)
    spent = sum.overflow ? .max : sum.partialValue
  }

  /// A new turn begins.
  mutating func renew() {
    spent = 0
    frames = 0
  }
}

extension SessionAction {
  /// What it takes to do this, at the least.
  var effort: Int {
    switch self {
    case .none, .append, .demand, .commit, .settle, .pong, .welcome: 0
    // A page is collected.
    case .listTopics, .listCursors: 16
    // Something is asked of another loop, or tells many.
    case .showTopic, .createTopic, .deleteTopic, .connectTopic, .moveCursor, .deleteCursor: 4
    default: 1
    }
  }
}
