import SluiceIO

/// Streams of a producer, or of a subscription with a durable cursor, that have ended in a cluster without the last word of the topic's node. On the loop only.
///
/// A lost connection, or a node that has lost the topic's node, leaves it open whether the topic's node has acted on the opening or will do so later: what
/// a cut has held up comes when the cut is over. It then takes the producer's number, or the cursor, from the stream that the client has opened since. Each of
/// these may do so once; the client opens its stream again, which is the last one then.
struct DoubtfulOpenings {
  /// How long an opening may be held up: nodes give each other up after 5 s of silence, and drop what they had to send.
  static let memory = Duration.seconds(15)
  private static let most = 16

  private var count = 0
  private var last: MonotonicTime?

  /// A stream has ended without the last word of the topic's node.
  mutating func add(at now: MonotonicTime) {
    count = min(count + 1, Self.most)
    last = now
  }

  /// Another opening has taken the stream's place.
  ///
  /// - Returns: whether that may be one of these, so that the stream should be opened again.
  mutating func explain(at now: MonotonicTime) -> Bool {
    guard count > 0, let last, now - last < Self.memory else {
      count = 0
      return false
    }
    count -= 1
    return true
  }
}
