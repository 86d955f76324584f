import SluiceIO
import SluiceWire

/// What a connection has open.
struct OpenCounts {
  var subscriptions = 0
  var publications = 0
}

// How much one connection, and all together, may have open.
extension Connection {
  /// A handle comes, or goes.
  func count(_ handle: Handle, _ change: Int) {
    switch handle {
    case .subscription, .starting:
      open.subscriptions += change
      context.core.metrics.add(.subscriptions, change)
    case .publication:
      open.publications += change
      context.core.metrics.add(.publications, change)
    case .none, .committing: break
    }
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
    let (limits, metrics) = (context.core.configuration.limits, context.core.metrics)
    guard open.subscriptions < limits.subscriptionsPerConnection else {
      metrics.add(.refusedSubscriptionsPerConnection)
      throw WireError(
        .limitReached,
        "the connection has \(limits.subscriptionsPerConnection) subscriptions, which is its limit; cancel some, or open another connection"
      )
    }
    guard metrics[.subscriptions] < limits.subscriptions else {
      metrics.add(.refusedSubscriptions)
      throw WireError(
        .limitReached,
        "the broker has \(limits.subscriptions) subscriptions, which is its limit; try again later, or have it raised (--max-subscriptions)"
      )
    }
  }

  /// The same for publications.
  func checkPublications() throws(WireError) {
    let (limits, metrics) = (context.core.configuration.limits, context.core.metrics)
    guard open.publications < limits.publicationsPerConnection else {
      metrics.add(.refusedPublicationsPerConnection)
      throw WireError(
        .limitReached,
        "the connection has \(limits.publicationsPerConnection) publications, which is its limit; cancel some, or open another connection"
      )
    }
    guard metrics[.publications] < limits.publications else {
      metrics.add(.refusedPublications)
      throw WireError(
        .limitReached,
        "the broker has \(limits.publications) publications, which is its limit; try again later, or have it raised (--max-publications)"
      )
    }
  }
}
