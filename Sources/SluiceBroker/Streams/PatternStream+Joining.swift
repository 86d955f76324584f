import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

// How a subscription to a pattern joins its topics: those that there are, a share in each turn; those made later, and those that the client's permissions
// add or take away.
extension PatternStream {
  /// Topics found together before the store is asked where to begin in them.
  private static let foundTogether = 256

  static func open(
    _ stream: UInt32, _ frame: SubscribePattern, on streams: StreamMultiplexer,
    with remote: (any RemoteTopics)? = nil
  ) throws(WireError) {
    let pattern = try TopicPattern(frame.pattern)
    // A node has one connection for several clients, whose own nodes have checked that.
    if !streams.client.isNode { try streams.counts.checkPatterns(streams.core) }
    let watch = PatternWatch(on: streams.loop)
    let (number, found, shards) = try streams.core.registry.watch(pattern, watch)
    streams.counts.addPattern()
    let subscription = PatternStream(
      frame, pattern, stream: stream, on: streams, watch, number, walk: found, shards, remote)
    streams.attach(subscription, to: stream)
    remote?.begin(subscription, shards.set)
    subscription.joinTopics()
  }

  /// Whether the subscription hasn't ended.
  var isOpen: Bool { streams.session.object(stream) === self }

  /// Joins existing topics until the turn's work budget is used up; the subscription begins when it has all of them.
  private func joinTopics() {
    while isOpen {
      guard !streams.client.workBudget.isExhausted else {
        return streams.goOnLater { [self] in joinTopics() }
      }
      guard !topics.hasUnentered else {
        let entered = topics.enterPositions(atMost: streams.client.workBudget.left(.positions))
        streams.client.workBudget.spend(entered, of: .positions)
        continue
      }
      findTopics(atMost: Self.foundTogether)
      let unknown = unknownStarts()
      if !unknown.isEmpty { return findStarts(unknown) }
      var isDone = false
      streams.attempt(stream) { () throws(WireError) in
        isDone = try join()
        if isDone { begin() }
      }
      if isDone { return }
    }
  }

  /// Asks the store where to begin in these topics, and continues when all answers have arrived.
  private func findStarts(_ unknown: [(topic: Topic, time: Int64)]) {
    let answers = Answers(unknown.count)
    let continuation = streams.continuation(of: stream)
    for (topic, time) in unknown {
      guard let storage = topic.storage else { continue }
      storage.service.find(time, in: storage) { offset in
        continuation.resume { (stream: PatternStream) in
          stream.begin(topic, at: offset)
          if answers.isLast() { stream.joinTopics() }
        }
      }
    }
  }

  /// A topic was made that the pattern selects.
  func wasMade(_ topic: Topic, _ epoch: TopicEpoch) {
    guard streams.client.matchesTopics(named: topic.name) else { return }
    streams.attempt(stream) { () throws(WireError) in try topicMade(topic, epoch) }
  }

  /// Leaves and joins topics after the client's permissions have changed.
  func changeTopics() {
    let wasJoining = isJoining
    lose { !streams.client.matchesTopics(named: $0) }
    gain(streams.core.registry.topics(selectedBy: pattern))
    if !wasJoining, isJoining { joinTopics() }
  }
}

/// Counts answers down.
private final class Answers: Sendable {
  private let missing: Atomic<Int>

  init(_ count: Int) {
    missing = Atomic(count)
  }

  /// Counts an answer. Returns whether it was the last one.
  func isLast() -> Bool {
    missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
  }
}
