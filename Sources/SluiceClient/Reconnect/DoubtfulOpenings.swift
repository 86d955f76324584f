import SluiceIO

/// Streams of a producer, or of a subscription with a durable cursor, that have ended in a cluster without a final answer of the topic's node. On the loop
/// only.
///
/// When a connection is lost, or another node loses contact with the topic's node, it is unknown whether the topic's node performs the opening. Frames
/// delayed by a network partition arrive when it ends. Such an opening then takes the producer's ID, or the cursor, from the stream that the client has
/// opened since. Each delayed opening may do so once; the client then opens its stream again, which becomes the last one.
struct DoubtfulOpenings {
  /// How long an opening may be delayed: nodes close their links after 5 s of silence, and drop the output that waits.
  static let memory = Duration.seconds(15)
  private static let most = 16

  private var count = 0
  private var last: MonotonicTime?

  /// Notes that a stream has ended without a final answer of the topic's node.
  mutating func add(at now: MonotonicTime) {
    count = min(count + 1, Self.most)
    last = now
  }

  /// Handles that another opening has taken the stream's place.
  ///
  /// - Returns: whether a delayed opening may be the cause, so that the stream should be opened again.
  mutating func explain(at now: MonotonicTime) -> Bool {
    guard count > 0, let last, now - last < Self.memory else {
      count = 0
      return false
    }
    count -= 1
    return true
  }
}
