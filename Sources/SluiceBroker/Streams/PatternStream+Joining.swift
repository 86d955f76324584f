import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

// Joins the topics of a subscription to a pattern: existing ones, a share in each turn; later ones when they are created; and those that a change of the
// client's permissions adds or removes.
extension PatternStream {
  /// The most topics to find before the store is searched for their starts.
  private static let foundTogether = 256

  static func open(
    _ stream: UInt32, _ frame: SubscribePattern, on streams: StreamMultiplexer,
    with remote: (any RemoteTopics)? = nil
  ) throws(WireError) {
    let pattern = try TopicPattern(frame.pattern)
    // Another node uses one connection for several clients, and has checked the limit for each of them.
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

  /// Joins existing topics until the turn's work budget is used up. The subscription begins when it has joined all of them.
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

  /// Finds the starts in these topics in the store, and continues when all of them were found.
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

  /// Called when a topic was created that the pattern selects.
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
