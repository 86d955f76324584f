import SluiceSession
import SluiceTopics
import SluiceWire

/// The bytes that the broker keeps because of a stream's opening frame until the stream ends, or until the request is answered.
///
/// Topics, groups, cursors and producers outlive the stream and are charged at their creation. The test of the ledger compares the bytes of each frame
/// with the growth of the heap.
struct KeptCost: Equatable {
  var bytes: Int
  /// Whether the stream may use the reserve: see ``KeptMemory``.
  var isPlain: Bool

  /// Bytes of a connection without streams, besides the client's name.
  static let connection = 3_072
  /// Bytes of a subscription, a member of a group or a publication, besides the contents of its frame.
  static let stream = 1_024
  /// Bytes of a subscription to a pattern, besides its text, its filter and the topics that it matches.
  static let pattern = 3_072
  /// Bytes of a request that waits for its answer.
  static let request = 512
  /// Bytes of a position of a pattern's subscription, besides the topic's name: first in a list, then in a table.
  static let position = 256
  /// Bytes for each token of a pattern in the index of patterns.
  private static let token = 192
  /// Bytes of a condition of a filter, besides its texts, which are kept twice: as received, and in the form that is compared.
  private static let condition = 192

  /// The cost of an action that opens a stream; nil for one that doesn't.
  static func of(_ action: ServerAction) -> (stream: UInt32, cost: KeptCost)? {
    switch action {
    case .subscribe(let number, let frame):
      let isPlain = frame.filter.isEmpty && frame.cursor.isEmpty
      let texts = frame.topic.utf8.count + 2 * frame.cursor.utf8.count
      return (number, KeptCost(bytes: stream + texts + bytes(of: frame.filter), isPlain: isPlain))
    case .subscribePattern(let number, let frame):
      let (length, tokens) = (
        frame.pattern.utf8.count, frame.pattern.utf8.count { $0 == UInt8(ascii: ".") } + 1
      )
      let bytes =
        pattern + 2 * length + tokens * token + bytes(of: frame.filter) + bytes(of: frame.positions)
      return (number, KeptCost(bytes: bytes, isPlain: false))
    case .join(let number, let frame):
      let texts = frame.topic.utf8.count + frame.group.utf8.count
      // The group keeps the filter. While a member waits for a node or the store, the member keeps it.
      return (number, KeptCost(bytes: stream + texts + bytes(of: frame.settings.filter), isPlain: false))
    case .openPublication(let number, let frame):
      return (number, KeptCost(bytes: stream + frame.topic.utf8.count, isPlain: true))
    case .restoreStates(let number, let frame):
      return (number, KeptCost(bytes: request + frame.entries.byteCount, isPlain: true))
    case .renew(let number, let credentials):
      return (number, KeptCost(bytes: request + credentials.keptBytes, isPlain: true))
    default:
      return action.requestNumber.map { ($0, KeptCost(bytes: request, isPlain: true)) }
    }
  }

  static func bytes(of filter: RecordFilter) -> Int {
    filter.conditions.reduce(0) { $0 + condition + $1.subject.name.utf8.count + $1.test.value.count }
  }

  static func bytes(of positions: some Sequence<TopicPosition>) -> Int {
    positions.reduce(0) { $0 + position + $1.topic.utf8.count }
  }
}

extension Credentials {
  fileprivate var keptBytes: Int { user.utf8.count + secret.utf8.count }
}
