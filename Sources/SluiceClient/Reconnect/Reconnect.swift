import ReactiveCore
import SluiceIO

@_exported import enum SluiceIO.SocketAddress

/// Decides when to try which server: its input is events, its output the next step.
///
/// A value without a clock or a network, with its own seeded random numbers.
struct Reconnect {
  enum Step: Equatable {
    case connect(server: Int)
    /// Call `waited()` after this time.
    case wait(Duration)
    case giveUp
  }

  /// Nil for no further attempt.
  let policy: ReconnectPolicy?
  private let servers: Int
  private(set) var random: SeededRandom

  private var server: Int
  /// Servers that are left in the current round, including the next one.
  private var leftInRound: Int
  /// Failed rounds, each of which lengthens the wait.
  private var rounds = 0
  /// Attempts since the connection was lost, or since the beginning.
  private(set) var attempts = 0
  /// The time of the loss, or of the beginning.
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

  /// The first attempt.
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

  /// The connection is lost.
  mutating func lost(at now: MonotonicTime) -> Step {
    guard let policy else { return .giveUp }
    // Waits longer each time for a broker that fails soon after clients have connected.
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
  /// - Parameter refusesClient: the server has refused the client's credentials. Another server may accept them, or the same one after a change
  ///   of its users.
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

  /// Continues after the wait.
  mutating func waited() -> Step {
    attempt()
  }

  /// Whether there was a connection before.
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
    // The last attempt is made at the end of the time, not earlier.
    if let end = end(policy), now + delay > end { delay = max(end - now, .zero) }
    return .wait(delay)
  }
}

/// Whether and how a ``Client`` reconnects after its connection is lost.
///
/// After a loss the client waits, then tries the servers one after the other, beginning behind the last one. If none answers, it waits
/// longer: ``initialDelay``, ``multiplier`` times that, up to ``maximumDelay``. A random part of each delay is left out, so that the clients
/// of a restarted broker don't all connect at the same moment.
///
/// In a cluster, a topic moves to another node when its own one stops, fails or is relieved. Its subscriptions, publications and requests are
/// then opened again on the connection that they have, after 5 to 10 ms at first and up to 500 ms later; other topics aren't affected. The client
/// tries for ``giveUpAfter``, and fails these streams with ``ClientError/Code/topicMoved`` afterwards. With a limit of ``attempts`` alone,
/// and without a policy, it tries for 10 s.
///
/// ```swift
/// var options = ClientOptions()
/// options.reconnect?.giveUpAfter = .seconds(60)
/// options.reconnect = nil  // The first lost connection is the end.
/// ```
public struct ReconnectPolicy: Hashable, Sendable {
  /// The first wait. From 0 up. Default: 100 ms.
  public var initialDelay = Duration.milliseconds(100)
  /// The factor from each wait to the next. From 1 up. Default: 2.
  public var multiplier = 2.0
  /// The longest wait. Default: 10 s.
  public var maximumDelay = Duration.seconds(10)
  /// The part of a wait that may be randomly left out: 0 for none, 1 for all of it. Default: 0.5.
  public var jitter = 0.5
  /// The time after the loss at which the client gives up; it still waits for an attempt in progress. Default: nil, never.
  public var giveUpAfter: Duration?
  /// Whether ``giveUpAfter`` and ``attempts`` also apply to a publication that waits for the broker's storage: see ``TopicSubject/state``. If not, it waits
  /// until the storage accepts records. Default: true.
  public var limitsStorageWaits = true
  /// The most attempts after a loss, each server counted. From 1 up. Default: nil, no limit.
  public var attempts: Int?
  /// How many rounds in a row may have refusals of the client's credentials, after a loss, before the client gives up; each attempt gets new ones
  /// from a provider. Before the first connection, it is one. From 1 up. Default: 3.
  public var refusals = 3
  /// Whether the client begins with a random server rather than the first, to spread many clients. Default: false.
  public var startsAnywhere = false
  /// Whether the policy applies to the first connection as well. Default: false: each server is tried once, and `connect` fails if none
  /// answers.
  public var includesFirst = false

  public init() {}

  /// The wait after `round` failed rounds, without jitter.
  func delay(round: Int) -> Duration {
    let longest = Double(maximumDelay.clampedNanoseconds)
    var delay = Double(max(initialDelay, .zero).clampedNanoseconds)
    for _ in 0..<round where delay < longest { delay *= max(1, multiplier) }
    return .nanoseconds(Int64(max(0, min(delay, longest))))
  }
}

/// The state of a client's connection.
public enum ConnectionState: Hashable, Sendable {
  /// The client is trying this server. Attempts count from 1 since the loss of the connection, each server counted.
  case connecting(SocketAddress, attempt: Int)
  /// The client has a connection to this server.
  case connected(SocketAddress)
  /// The client has no connection, and tries again after this time. The cause is the failure of the last attempt, or of the connection.
  case waiting(Duration, attempt: Int, cause: ClientError)
  /// The client is closed. The publisher finishes after this.
  case closed(ClientError)
}

extension Client {
  /// The state of the client's connection, now and at each change. Its subscribers and producers notice only a pause when the connection is
  /// lost.
  ///
  /// Values are delivered on the client's loop, the first one on the caller's thread. Finishes when the client is closed, for any reason;
  /// cancelling affects this subscription only.
  ///
  /// ```swift
  /// let states = client.connectionState.sink { state in
  ///   if case .waiting(_, _, let cause) = state { print("offline: \(cause)") }
  /// }
  /// ```
  public var connectionState: AnyPublisher<ConnectionState, Never> { core.states.eraseToAnyPublisher() }
}
