import SluiceIO
import SluiceWire
import Synchronization

/// What a connection's subscriptions to patterns have together.
struct PatternCount {
  var subscriptions = 0
  /// Topics that they match, each counted for each of them.
  var matches = 0
  /// The number that the last one got.
  var last: UInt64 = 0
}

// Subscriptions to patterns, as far as they aren't like others.
extension Connection {
  /// Joining a topic takes about a microsecond: others get their turn after so many.
  private static let joinedTogether = 256

  func subscribePattern(_ stream: UInt32, _ frame: SubscribePattern) throws(WireError) {
    let pattern = try TopicPattern(frame.pattern)
    let limit = context.core.configuration.limits.patternsPerConnection
    guard patterns.subscriptions < limit else {
      context.core.metrics.add(.refusedPatterns)
      throw WireError(
        .limitReached,
        "the connection has \(limit) subscriptions to patterns, which is its limit; open another")
    }
    // Each is compared with the pattern.
    if pattern.hasWildcards { effort.spend(registry.count / 32) }
    patterns.last += 1
    let number = patterns.last
    let loop = context.loop
    let (watch, found) = try registry.watch(pattern) { [weak self] topic, life in
      loop.execute { [weak self] in self?.topicMade(topic, life, for: number, on: stream) }
    }
    patterns.subscriptions += 1
    setHandle(
      stream,
      .subscription(
        PatternSubscription(
          frame, pattern, stream: stream, connection: self, number: number, watch: watch,
          found: matched(found))))
    joinTopics(for: number, on: stream)
  }

  private func pattern(_ number: UInt64, on stream: UInt32) -> PatternSubscription? {
    guard case .subscription(let consumer) = handle(stream), let pattern = consumer as? PatternSubscription,
      pattern.number == number
    else { return nil }
    return pattern
  }

  /// Joins the topics that are there, a few at a time; the subscription stands when it has all of them.
  private func joinTopics(for number: UInt64, on stream: UInt32) {
    guard let pattern = pattern(number, on: stream) else { return }
    let unknown = pattern.unknownStarts(atMost: Self.joinedTogether)
    if !unknown.isEmpty { return findStarts(unknown, for: number, on: stream) }
    attempt(stream) { () throws(WireError) in
      let isNew = !pattern.hasBegun
      if try pattern.join(atMost: Self.joinedTogether) {
        if isNew { send(Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0), stream: stream) }
        makeReady(pattern)
      } else {
        context.loop.execute { [weak self] in self?.joinTopics(for: number, on: stream) }
      }
    }
  }

  /// Asks the store where to begin in those topics, and goes on when all that is known.
  private func findStarts(
    _ unknown: [(topic: Topic, time: Int64)], for number: UInt64, on stream: UInt32
  ) {
    let loop = context.loop
    let answers = Answers(unknown.count)
    for (topic, time) in unknown {
      guard let storage = topic.storage else { continue }
      storage.service.find(time, in: storage) { [weak self] offset in
        loop.execute { [weak self] in
          guard let self else { return }
          pattern(number, on: stream)?.begin(topic, at: offset)
          if answers.isLast() { joinTopics(for: number, on: stream) }
        }
      }
    }
  }

  /// A topic was made that the subscription's pattern selects.
  private func topicMade(_ topic: Topic, _ life: TopicLife, for number: UInt64, on stream: UInt32) {
    guard let pattern = pattern(number, on: stream), matchesTopics(named: topic.name) else { return }
    attempt(stream) { () throws(WireError) in try pattern.topicMade(topic, life) }
  }

  /// The client's permissions have changed: the subscription is to other topics of those that its pattern selects.
  func changeTopics(of pattern: PatternSubscription) {
    let isJoining = pattern.isJoining
    pattern.lose { !matchesTopics(named: $0) }
    pattern.gain(matched(registry.topics(selectedBy: pattern.pattern)))
    if !isJoining, pattern.isJoining { joinTopics(for: pattern.number, on: pattern.stream) }
  }

  // MARK: Limits

  /// Another topic belongs to one of the patterns.
  func addMatch() throws(WireError) {
    let limit = context.core.configuration.limits.matches
    guard patterns.matches < limit else {
      context.core.metrics.add(.refusedMatches)
      throw WireError(
        .limitReached,
        "the connection's patterns match \(limit) topics in all, which is its limit; use ones that match fewer, or several connections"
      )
    }
    patterns.matches += 1
  }

  func removeMatches(_ count: Int) {
    patterns.matches -= count
  }

  func removePattern(matches: Int) {
    patterns.matches -= matches
    patterns.subscriptions -= 1
  }
}

/// Counts answers down.
private final class Answers: Sendable {
  private let missing: Atomic<Int>

  init(_ count: Int) {
    missing = Atomic(count)
  }

  /// Another one has come. Returns whether that were all.
  func isLast() -> Bool {
    missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
  }
}
