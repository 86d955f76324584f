import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

/// The counts of a connection's subscriptions to patterns.
struct PatternCount {
  var subscriptions = 0
  /// Topics that they match, counted per subscription.
  var matches = 0
}

// Subscribing to patterns.
extension Connection {
  /// Topics found together before the store is asked where to begin in them.
  private static let foundTogether = 256

  func subscribePattern(_ stream: UInt32, _ frame: SubscribePattern) throws(WireError) {
    let pattern = try TopicPattern(frame.pattern)
    let limit = context.core.configuration.limits.patternsPerConnection
    guard patterns.subscriptions < limit else {
      context.core.metrics.add(.refusedPatterns)
      throw WireError(
        .limitReached,
        "the connection has \(limit) subscriptions to patterns, which is its limit; open another")
    }
    let continuation = continuation(of: stream)
    let (watch, found) = try registry.watch(pattern) { topic, epoch in
      continuation.resume { connection in connection.topicMade(topic, epoch, on: stream) }
    }
    patterns.subscriptions += 1
    let subscription = PatternSubscription(
      frame, pattern, stream: stream, connection: self, watch: watch, walk: found)
    attach(subscription, to: stream)
    joinTopics(of: subscription)
  }

  /// Whether the subscription hasn't ended.
  private func isOpen(_ pattern: PatternSubscription) -> Bool { session.object(pattern.stream) === pattern }

  /// Joins existing topics until the turn's work budget is used up; the subscription begins when it has all of them.
  func joinTopics(of pattern: PatternSubscription) {
    while isOpen(pattern) {
      guard !workBudget.isExhausted else { return goOnLater(.join(pattern)) }
      pattern.findTopics(atMost: Self.foundTogether)
      let unknown = pattern.unknownStarts()
      if !unknown.isEmpty { return findStarts(unknown, for: pattern) }
      var isDone = false
      attempt(pattern.stream) { () throws(WireError) in
        let isNew = !pattern.hasBegun
        isDone = try pattern.join()
        guard isDone else { return }
        if isNew { send(Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0), stream: pattern.stream) }
        makeReady(pattern)
      }
      if isDone { return }
    }
  }

  /// Tells the topics of a pattern's subscription that it requests more.
  func tellDemand(of pattern: PatternSubscription) {
    guard isOpen(pattern) else { return }
    if !pattern.tellDemand() { goOnLater(.tellDemand(pattern)) }
  }

  /// Asks the store where to begin in these topics, and continues when all answers have arrived.
  private func findStarts(_ unknown: [(topic: Topic, time: Int64)], for pattern: PatternSubscription) {
    let answers = Answers(unknown.count)
    let continuation = continuation(of: pattern.stream)
    for (topic, time) in unknown {
      guard let storage = topic.storage else { continue }
      storage.service.find(time, in: storage) { offset in
        continuation.resume { (pattern: PatternSubscription) in
          pattern.begin(topic, at: offset)
          if answers.isLast() { pattern.connection.joinTopics(of: pattern) }
        }
      }
    }
  }

  /// A topic was made that the subscription's pattern selects.
  private func topicMade(_ topic: Topic, _ epoch: TopicEpoch, on stream: UInt32) {
    guard let pattern = object(PatternSubscription.self, on: stream), matchesTopics(named: topic.name) else {
      return
    }
    attempt(stream) { () throws(WireError) in try pattern.topicMade(topic, epoch) }
  }

  /// Leaves and joins topics after the client's permissions have changed.
  func changeTopics(of pattern: PatternSubscription) {
    let isJoining = pattern.isJoining
    pattern.lose { !matchesTopics(named: $0) }
    pattern.gain(registry.topics(selectedBy: pattern.pattern))
    if !isJoining, pattern.isJoining { joinTopics(of: pattern) }
  }

  // MARK: Limits

  /// Counts another topic that one of the patterns matches.
  func addMatch() throws(WireError) {
    let limit = context.core.configuration.limits.matches
    guard patterns.matches < limit else {
      context.core.metrics.add(.refusedMatches)
      throw WireError(
        .limitReached,
        "the connection's patterns match \(limit) topics in all, which is its limit; use ones that match fewer, or several connections"
      )
    }
    try context.core.memory.kept.check()
    patterns.matches += 1
    context.core.memory.kept.add(KeptMemory.match)
  }

  func removeMatches(_ count: Int) {
    patterns.matches -= count
    context.core.memory.kept.add(-count * KeptMemory.match)
  }

  func removePattern(matches: Int) {
    removeMatches(matches)
    patterns.subscriptions -= 1
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
