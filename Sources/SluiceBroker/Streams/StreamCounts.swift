import SluiceSession
import SluiceTopics
import SluiceWire

/// The open streams of one connection, and the limits on them and on those of all connections. Belongs to the connection's loop.
struct StreamCounts {
  private(set) var subscriptions: Int32 = 0
  private(set) var publications: Int32 = 0
  private(set) var patterns: Int32 = 0
  /// Topics that the connection's patterns match, counted per subscription.
  private(set) var matches: Int32 = 0
  /// The charge for all matches together; nil before the first one.
  private var matchCharge: KeptAccount.Charge?

  /// Counts a stream that begins or ends.
  mutating func count(_ kind: StreamKind, _ change: Int, _ core: BrokerCore) {
    switch kind {
    case .subscription:
      subscriptions += Int32(change)
      core.metrics.add(.subscriptions, change)
    case .publication:
      publications += Int32(change)
      core.metrics.add(.publications, change)
    case .committing, .request: break
    }
  }

  /// Checks the limits for another subscription. Several loops that check at the same time may exceed the limit together.
  func checkSubscriptions(_ core: BrokerCore) throws(WireError) {
    try check(
      core, "subscriptions", Int(subscriptions), atMost: core.configuration.limits.subscriptionsPerConnection,
      or: .refusedSubscriptionsPerConnection, ofAll: .subscriptions,
      atMost: core.configuration.limits.subscriptions,
      or: .refusedSubscriptions)
  }

  /// Checks the limits for another publication.
  func checkPublications(_ core: BrokerCore) throws(WireError) {
    try check(
      core, "publications", Int(publications), atMost: core.configuration.limits.publicationsPerConnection,
      or: .refusedPublicationsPerConnection, ofAll: .publications,
      atMost: core.configuration.limits.publications,
      or: .refusedPublications)
  }

  private func check(
    _ core: BrokerCore, _ what: String, _ own: Int, atMost ownLimit: Int, or ownRefusal: BrokerMetric,
    ofAll all: BrokerMetric,
    atMost limit: Int, or refusal: BrokerMetric
  ) throws(WireError) {
    guard own < ownLimit else {
      core.metrics.add(ownRefusal)
      throw WireError(
        .limitReached,
        "the connection has \(ownLimit) \(what), which is its limit; cancel some, or open another connection")
    }
    guard core.metrics[all] < limit else {
      core.metrics.add(refusal)
      throw WireError(
        .limitReached,
        "the broker has \(limit) \(what), the limit; try again later, or raise --max-\(what)"
      )
    }
  }

  // MARK: Patterns

  /// Checks the connection's limit for another subscription to a pattern.
  func checkPatterns(_ core: BrokerCore) throws(WireError) {
    let limit = core.configuration.limits.patternsPerConnection
    guard Int(patterns) < limit else {
      core.metrics.add(.refusedPatterns)
      throw WireError(
        .limitReached,
        "the connection has \(limit) subscriptions to patterns, which is its limit; open another")
    }
  }

  mutating func addPattern() { patterns += 1 }

  mutating func removePattern(matches count: Int) {
    removeMatches(count)
    patterns -= 1
  }

  /// Counts another topic that one of the patterns matches.
  ///
  /// - Parameter isLimited: false for another node, whose connection serves several clients, and which has checked the limit for each of them.
  mutating func addMatch(by client: ConnectedClient, isLimited: Bool = true) throws(WireError) {
    let core = client.core
    let limit = core.configuration.limits.matches
    guard Int(matches) < limit || !isLimited else {
      core.metrics.add(.refusedMatches)
      throw WireError(
        .limitReached,
        "the connection's patterns match \(limit) topics in all, which is its limit; use ones that match fewer, or several connections"
      )
    }
    if let matchCharge {
      try matchCharge.grow(by: KeptMemory.match)
    } else {
      matchCharge = try client.kept.charge(KeptMemory.match)
    }
    matches += 1
  }

  mutating func removeMatches(_ count: Int) {
    matches -= Int32(count)
    matchCharge?.set(to: Int(matches) * KeptMemory.match)
  }
}
