import SluiceIO
import SluiceSession
import SluiceWire

/// What a connection has open.
struct OpenCounts {
  var subscriptions = 0
  var publications = 0
}

// How much one connection, and all together, may have open.
extension Connection {
  /// A stream begins to be served, or ends.
  func count(_ kind: StreamKind, _ change: Int) {
    switch kind {
    case .subscription:
      open.subscriptions += change
      context.core.metrics.add(.subscriptions, change)
    case .publication:
      open.publications += change
      context.core.metrics.add(.publications, change)
    case .committing, .request: return
    }
    context.core.memory.kept.add(change * KeptMemory.stream)
  }

  // MARK: Identities

  /// The client's identity is known: it may be connected so many times, and its connections share what it may publish and be sent.
  func enter(_ identity: String) throws(WireError) {
    account = try context.core.accounts.enter(identity, at: context.loop.now)
  }

  /// The connection is over.
  func leaveAccount() {
    guard let account else { return }
    self.account = nil
    context.core.accounts.leave(account, at: context.loop.now)
  }

  // MARK: Streams

  /// Whether there may be another subscription. Several loops that ask at the same moment may each get one more.
  func checkSubscriptions() throws(WireError) {
    try context.core.memory.kept.check()
    let limits = context.core.configuration.limits
    try check(
      "subscriptions", own: open.subscriptions, atMost: limits.subscriptionsPerConnection,
      refusing: .refusedSubscriptionsPerConnection)
    try check(
      "subscriptions", ofAll: .subscriptions, atMost: limits.subscriptions, refusing: .refusedSubscriptions)
  }

  /// The same for publications.
  func checkPublications() throws(WireError) {
    try context.core.memory.kept.check()
    let limits = context.core.configuration.limits
    try check(
      "publications", own: open.publications, atMost: limits.publicationsPerConnection,
      refusing: .refusedPublicationsPerConnection)
    try check(
      "publications", ofAll: .publications, atMost: limits.publications, refusing: .refusedPublications)
  }

  private func check(
    _ what: String, own count: Int, atMost limit: Int, refusing metric: BrokerMetric
  ) throws(WireError) {
    guard count >= limit else { return }
    context.core.metrics.add(metric)
    throw WireError(
      .limitReached,
      "the connection has \(limit) \(what), which is its limit; cancel some, or open another connection")
  }

  private func check(
    _ what: String, ofAll count: BrokerMetric, atMost limit: Int, refusing metric: BrokerMetric
  ) throws(WireError) {
    let metrics = context.core.metrics
    guard metrics[count] >= limit else { return }
    metrics.add(metric)
    throw WireError(
      .limitReached,
      "the broker has \(limit) \(what), which is its limit; try again later, or have it raised (--max-\(what))"
    )
  }
}
