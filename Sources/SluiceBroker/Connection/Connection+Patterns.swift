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
  /// Topics that are looked for before the store is asked where to begin in them.
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
    patterns.last += 1
    let number = patterns.last
    let (watch, found) = try registry.watch(pattern) { [reference] topic, epoch in
      reference.execute { $0.topicMade(topic, epoch, for: number, on: stream) }
    }
    patterns.subscriptions += 1
    setHandle(
      stream,
      .subscription(
        PatternSubscription(
          frame, pattern, stream: stream, connection: self, number: number, watch: watch,
          walk: found)))
    joinTopics(for: number, on: stream)
  }

  private func pattern(_ number: UInt64, on stream: UInt32) -> PatternSubscription? {
    guard case .subscription(let consumer) = handle(stream), let pattern = consumer as? PatternSubscription,
      pattern.number == number
    else { return nil }
    return pattern
  }

  /// Joins the topics that are there, as many as the turn's workBudget lasts for; the subscription stands when it has all of them.
  func joinTopics(for number: UInt64, on stream: UInt32) {
    while let pattern = pattern(number, on: stream) {
      guard !workBudget.isExhausted else { return goOnLater(.join(number: number, stream: stream)) }
      pattern.findTopics(atMost: Self.foundTogether)
      let unknown = pattern.unknownStarts()
      if !unknown.isEmpty { return findStarts(unknown, for: number, on: stream) }
      var isDone = false
      attempt(stream) { () throws(WireError) in
        let isNew = !pattern.hasBegun
        isDone = try pattern.join()
        guard isDone else { return }
        if isNew { send(Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0), stream: stream) }
        makeReady(pattern)
      }
      if isDone { return }
    }
  }

  /// Tells the topics of a pattern's subscription that it asks for more.
  func tellDemand(of number: UInt64, on stream: UInt32) {
    guard let pattern = pattern(number, on: stream) else { return }
    if !pattern.tellDemand() { goOnLater(.tellDemand(number: number, stream: stream)) }
  }

  /// Asks the store where to begin in those topics, and goes on when all that is known.
  private func findStarts(
    _ unknown: [(topic: Topic, time: Int64)], for number: UInt64, on stream: UInt32
  ) {
    let answers = Answers(unknown.count)
    for (topic, time) in unknown {
      guard let storage = topic.storage else { continue }
      storage.service.find(time, in: storage) { [reference] offset in
        reference.execute { connection in
          connection.pattern(number, on: stream)?.begin(topic, at: offset)
          if answers.isLast() { connection.joinTopics(for: number, on: stream) }
        }
      }
    }
  }

  /// A topic was made that the subscription's pattern selects.
  private func topicMade(_ topic: Topic, _ epoch: TopicEpoch, for number: UInt64, on stream: UInt32) {
    guard let pattern = pattern(number, on: stream), matchesTopics(named: topic.name) else { return }
    attempt(stream) { () throws(WireError) in try pattern.topicMade(topic, epoch) }
  }

  /// The client's permissions have changed: the subscription is to other topics of those that its pattern selects.
  func changeTopics(of pattern: PatternSubscription) {
    let isJoining = pattern.isJoining
    pattern.lose { !matchesTopics(named: $0) }
    pattern.gain(registry.topics(selectedBy: pattern.pattern))
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

  /// Another one has come. Returns whether that were all.
  func isLast() -> Bool {
    missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
  }
}
