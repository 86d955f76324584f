import ReactiveCore
import SluiceIO

@_exported import enum SluiceIO.SocketAddress

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

/// Whether and how a ``Client`` comes back after its connection is lost.
///
/// After a loss it waits a while, then tries the servers one after the other, beginning behind the one that it had. When none answers, it
/// waits longer, and so on: ``initialDelay``, ``multiplier`` times that, up to ``maximumDelay``; of each a random part is left off, so that
/// the clients of a broker that comes back don't all come at the same moment.
///
/// ```swift
/// var options = ClientOptions()
/// options.reconnect?.giveUpAfter = .seconds(60)
/// options.reconnect = nil  // The first lost connection is the end.
/// ```
public struct ReconnectPolicy: Hashable, Sendable {
  /// The first wait. From 0 up. Default: 100 ms.
  public var initialDelay = Duration.milliseconds(100)
  /// What each wait is multiplied by for the next. From 1 up. Default: 2.
  public var multiplier = 2.0
  /// The longest wait. Default: 10 s.
  public var maximumDelay = Duration.seconds(10)
  /// How much of a wait may be left off by chance: 0 for nothing, 1 for all of it. Default: 0.5.
  public var jitter = 0.5
  /// How long after the loss the client gives up; an attempt that is under way by then is still waited for. Default: nil, never.
  public var giveUpAfter: Duration?
  /// The most attempts after a loss, each server counted. From 1 up. Default: nil, as many as it takes.
  public var attempts: Int?
  /// How many times in a row the client's credentials may be refused after a loss, by some of the servers in each round, before the client gives
  /// up; each time a provider is asked for others. Before there was a connection, it is once. From 1 up. Default: 3.
  public var refusals = 3
  /// Whether it begins with a server chosen by chance rather than the first, so that many clients spread themselves.
  /// Default: false.
  public var startsAnywhere = false
  /// Whether connecting for the first time goes on in the same way. Default: false: then each server is tried once, and `connect`
  /// fails when none answers.
  public var includesFirst = false

  public init() {}

  /// The wait before a round of attempts, of which so many were in vain, without chance.
  func delay(round: Int) -> Duration {
    let longest = Double(maximumDelay.clampedNanoseconds)
    var delay = Double(max(initialDelay, .zero).clampedNanoseconds)
    for _ in 0..<round where delay < longest { delay *= max(1, multiplier) }
    return .nanoseconds(Int64(max(0, min(delay, longest))))
  }
}

/// How a client stands with its brokers.
public enum ConnectionState: Hashable, Sendable {
  /// It is trying this server, for the so-manyth time since the connection was lost, each server counted; from 1.
  case connecting(SocketAddress, attempt: Int)
  /// It has a connection to this server.
  case connected(SocketAddress)
  /// It has none, and will try again after that time. The cause is why the last attempt, or the connection, failed.
  case waiting(Duration, attempt: Int, cause: ClientError)
  /// It is over. After this the publisher finishes.
  case closed(ClientError)
}

extension Client {
  /// How the client stands with its brokers, now and from now on, for those who care: subscribers and producers on it notice nothing of a
  /// lost connection but a pause.
  ///
  /// Values are delivered on the client's loop, the first one on the caller's thread. Finishes when the client is closed, for whatever
  /// reason; cancelling changes nothing for others.
  ///
  /// ```swift
  /// let states = client.connectionState.sink { state in
  ///   if case .waiting(_, _, let cause) = state { print("offline: \(cause)") }
  /// }
  /// ```
  public var connectionState: AnyPublisher<ConnectionState, Never> { core.states.eraseToAnyPublisher() }
}
