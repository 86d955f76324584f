import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// The open streams of a connection.
struct OpenCounts {
  var subscriptions = 0
  var publications = 0
}

// Limits on the open streams of one connection and of all, and on the rates of an identity.
extension Connection {
  /// Counts a stream that begins or ends.
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

  /// Joins the account of the client's identity, which bounds its connections and has the rates that they share.
  func enter(_ identity: String) throws(WireError) {
    account = try context.core.accounts.enter(identity, at: context.loop.now)
  }

  /// Leaves the account when the connection ends.
  func leaveAccount() {
    guard let account else { return }
    self.account = nil
    context.core.accounts.leave(account, at: context.loop.now)
  }

  // MARK: Rates

  /// How many bytes of records may be sent now, at most `most`; 0 when the rate is used up: a timer makes the connection ready later.
  func deliveryRoom(atMost most: Int) -> Int {
    guard let limiter = account?.delivering else { return most }
    let now = context.loop.now
    let room = limiter.room(at: now)
    if room == 0 {
      context.core.metrics.add(.deliveryRateHolds)
      wakeForRate(after: limiter.wait(at: now))
    }
    return min(room, most)
  }

  /// Arms the timer that resumes what waits for the identity's rate.
  func wakeForRate(after delay: Duration) {
    guard !isRateTimerSet else { return }
    isRateTimerSet = true
    reference.schedule(after: delay) { connection in
      connection.isRateTimerSet = false
      for number in connection.session.numbers {
        connection.object(PublicationStream.self, on: number)?.rateAllowsMore()
      }
      connection.context.makeReady(connection)
    }
  }

  // MARK: Streams

  /// Checks the limits for another subscription. Several loops that check at the same moment may each pass.
  func checkSubscriptions() throws(WireError) {
    let limits = context.core.configuration.limits
    try check(
      "subscriptions", open.subscriptions, atMost: limits.subscriptionsPerConnection,
      or: .refusedSubscriptionsPerConnection, ofAll: .subscriptions, atMost: limits.subscriptions,
      or: .refusedSubscriptions)
  }

  /// Checks the limits for another publication.
  func checkPublications() throws(WireError) {
    let limits = context.core.configuration.limits
    try check(
      "publications", open.publications, atMost: limits.publicationsPerConnection,
      or: .refusedPublicationsPerConnection, ofAll: .publications, atMost: limits.publications,
      or: .refusedPublications)
  }

  private func check(
    _ what: String, _ own: Int, atMost ownLimit: Int, or ownRefusal: BrokerMetric, ofAll all: BrokerMetric,
    atMost limit: Int, or refusal: BrokerMetric
  ) throws(WireError) {
    let (metrics, kept) = (context.core.metrics, context.core.memory.kept)
    try kept.check()
    guard own < ownLimit else {
      metrics.add(ownRefusal)
      throw WireError(
        .limitReached,
        "the connection has \(ownLimit) \(what), which is its limit; cancel some, or open another connection")
    }
    guard metrics[all] < limit else {
      metrics.add(refusal)
      throw WireError(
        .limitReached,
        "the broker has \(limit) \(what), which is its limit; try again later, or have it raised (--max-\(what))"
      )
    }
  }
}
