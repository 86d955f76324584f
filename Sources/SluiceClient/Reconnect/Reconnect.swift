import SluiceIO

/// When to try which server: what happened in, what to do next out.
///
/// A value without a clock or a network; chance is its own, from a seed.
struct Reconnect {
  enum Step: Equatable {
    case connect(server: Int)
    /// Say `waited()` after that time.
    case wait(Duration)
    case giveUp
  }

  /// Nil: no second try.
  let policy: ReconnectPolicy?
  private let servers: Int
  private(set) var random: SeededRandom

  private var server: Int
  /// Servers that the present round has still to try, the next one included.
  private var leftInRound: Int
  /// Rounds in vain: how often the wait has grown.
  private var rounds = 0
  /// Attempts since the connection was lost, or since the beginning.
  private(set) var attempts = 0
  /// When that was.
  private var begin: MonotonicTime?
  private var connectedAt: MonotonicTime?
  /// Rounds in a row in which the client's credentials were refused.
  private var refusals = 0
  private var wasRefused = false

  init(_ policy: ReconnectPolicy?, servers: Int, seed: UInt64) {
    self.policy = policy
    self.servers = servers
    random = SeededRandom(seed: seed)
    leftInRound = servers
    server = 0
    if policy?.startsAnywhere == true, servers > 1 { server = random.next(in: 0...servers - 1) }
  }

  /// The first attempt of all.
  mutating func first(at now: MonotonicTime) -> Step {
    begin = now
    return attempt()
  }

  /// The attempt succeeded.
  mutating func connected(at now: MonotonicTime) {
    connectedAt = now
    refusals = 0
    wasRefused = false
  }

  /// The connection is over.
  mutating func lost(at now: MonotonicTime) -> Step {
    guard let policy else { return .giveUp }
    // A broker that breaks down as soon as somebody comes is left alone for longer and longer.
    if let connectedAt, now - connectedAt >= policy.delay(round: rounds) { rounds = 0 }
    hasConnected = true
    begin = now
    attempts = 0
    leftInRound = servers
    moveOn()
    return wait(policy, now)
  }

  /// The attempt failed.
  ///
  /// - Parameter refusesClient: the server was there, and doesn't want this client: more attempts are of no use, but another server may, or the
  ///   broker's lists are just being changed.
  mutating func failed(at now: MonotonicTime, refusesClient: Bool = false) -> Step {
    leftInRound -= 1
    moveOn()
    if refusesClient { wasRefused = true }
    if wasRefused, leftInRound <= 0 {
      wasRefused = false
      refusals += 1
      if !hasConnected || refusals >= policy?.refusals ?? 1 { return .giveUp }
    }
    guard hasConnected || policy?.includesFirst == true, let policy else {
      return leftInRound > 0 ? attempt() : .giveUp
    }
    if let most = policy.attempts, attempts >= most { return .giveUp }
    if let end = end(policy), now >= end { return .giveUp }
    if leftInRound > 0 { return attempt() }
    leftInRound = servers
    return wait(policy, now)
  }

  /// The wait is over.
  mutating func waited() -> Step {
    attempt()
  }

  /// There was a connection at least once.
  private var hasConnected = false

  private mutating func attempt() -> Step {
    attempts += 1
    return .connect(server: server)
  }

  private mutating func moveOn() {
    server = (server + 1) % servers
  }

  private func end(_ policy: ReconnectPolicy) -> MonotonicTime? {
    guard let begin, let time = policy.giveUpAfter else { return nil }
    return begin + time
  }

  private mutating func wait(_ policy: ReconnectPolicy, _ now: MonotonicTime) -> Step {
    var delay = policy.delay(round: rounds)
    rounds += 1
    let spare = Int64(Double(delay.clampedNanoseconds) * min(1, max(0, policy.jitter)))
    if spare > 0 { delay -= random.next(in: .zero ... .nanoseconds(spare)) }
    // The last attempt comes when the time is up, not before.
    if let end = end(policy), now + delay > end { delay = max(end - now, .zero) }
    return .wait(delay)
  }
}
