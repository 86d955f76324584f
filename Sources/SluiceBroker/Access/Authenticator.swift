import SluiceAccess
import SluiceIO
import SluiceTopics
import SluiceWire
import Synchronization

/// Verifies clients' credentials one at a time on a loop of its own, because verifying a password is expensive.
///
/// From any thread.
final class Authenticator: Sendable {
  typealias Verification =
    @Sendable (AccessPolicy, Credentials, _ clientID: String, StreamSecurity?, _ now: Int64) -> Result<
      Identity, WireError
    >

  /// The result of an attempt, and the policy under which it was made.
  struct Finding: Sendable {
    fileprivate var result: Result<Identity, WireError>
    fileprivate var generation: UInt64

    fileprivate init(_ result: Result<Identity, WireError>, generation: UInt64) {
      self.result = result
      self.generation = generation
    }

    /// The finding for an attempt that was rejected.
    init(_ error: WireError) {
      self.init(.failure(error), generation: 0)
    }
  }

  /// A client's attempt to authenticate.
  struct Attempt: Sendable {
    fileprivate var number: UInt64
    fileprivate var peer: SocketAddress
    fileprivate var credentials: Credentials
    fileprivate var clientID: String
    fileprivate var security: StreamSecurity?
    fileprivate var completion: @Sendable (Finding) -> Void

    /// Whether the credentials could be guessed. A certificate can't be, so its attempts don't wait because of guesses.
    fileprivate var isGuess: Bool { credentials.method != .none }
  }

  /// The key of a queue: the address, with separate queues for credentials that could be guessed and others.
  private struct Line: Hashable {
    var origin: PeerOrigin?
    var isGuess: Bool

    init(_ attempt: Attempt) {
      origin = PeerOrigin(attempt.peer)
      isGuess = attempt.isGuess
    }
  }

  private struct State {
    var policy: AccessPolicy
    /// The number of policy changes.
    var generation: UInt64 = 0
    var queue: AttemptQueue<Line, Attempt>
    var limiter: AttemptLimiter
    var known: KnownLogins
    var lastNumber: UInt64 = 0
    /// The numbers of attempts that were delayed because of their address.
    var slowed: Set<UInt64> = []
    /// Whether a job that handles the next attempt is scheduled.
    var isBusy = false
    /// Armed while all waiting addresses are delayed. Expires at the end of the shortest delay.
    var timer: TimerToken?

    /// Updates the delays and the standing of the address after a result.
    mutating func note(_ attempt: Attempt, _ result: Result<Identity, WireError>, at now: MonotonicTime) {
      if case .success(let identity) = result { known.add(identity.name, from: PeerOrigin(attempt.peer)) }
      guard attempt.isGuess else { return }
      switch result {
      case .success: limiter.succeeded(attempt.peer.host, at: now.nanoseconds)
      // An expired token was valid, so it wasn't guessed.
      case .failure(let error) where error.code == .credentialsExpired: break
      case .failure:
        limiter.failed(attempt.peer.host, at: now.nanoseconds)
        queue.failed(Line(attempt))
      }
    }
  }

  private let loop: any EventLoop
  private let verify: Verification
  private let metrics: BrokerMetrics
  private let state: Mutex<State>

  /// - Parameters:
  ///   - loop: the loop on which credentials are verified, which may take tens of milliseconds each.
  ///   - limits: the most attempts that may wait, and their delays after failures.
  init(
    _ policy: AccessPolicy, on loop: any EventLoop, limits: BrokerLimits, metrics: BrokerMetrics,
    verify: @escaping Verification = Authenticator.verify
  ) {
    self.loop = loop
    self.verify = verify
    self.metrics = metrics
    let queue = AttemptQueue<Line, Attempt>(
      limit: limits.authentications, addressLimit: limits.authenticationsPerAddress)
    state = Mutex(
      State(
        policy: policy, queue: queue, limiter: AttemptLimiter(limits.attempts),
        known: KnownLogins(capacity: limits.attempts.capacity)))
  }

  static let verify: Verification = { policy, credentials, clientID, security, now in
    Result { () throws(WireError) in
      try policy.authenticate(
        credentials, clientID: clientID, peerName: security?.peerName, peerExpires: security?.peerExpires,
        now: now)
    }
  }

  // MARK: The policy

  var present: AccessPolicy { state.withLock { $0.policy } }

  /// Replaces the policy. The caller must reconsider connected clients.
  func update(_ policy: AccessPolicy) {
    state.withLock { state in
      state.policy = policy
      state.generation += 1
    }
  }

  /// The identity with its present permissions; nil when it may no longer connect.
  func reconsider(_ identity: Identity) -> Identity? {
    state.withLock { $0.policy }.reconsider(identity)
  }

  /// A link by which its holder may do something as an identity may.
  func link(
    _ operation: LinkOperation, on topic: String, by identity: Identity, until expires: Int64
  ) throws(WireError) -> (text: String, expires: Int64) {
    try state.withLock { $0.policy }.link(operation, on: topic, by: identity, until: expires)
  }

  /// Returns the identity of a finding, under the present policy.
  ///
  /// - Throws: the reason why the client is rejected.
  func identity(_ finding: Finding) throws(WireError) -> Identity {
    let identity = try finding.result.get()
    let (policy, generation) = state.withLock { ($0.policy, $0.generation) }
    if generation == finding.generation { return identity }
    guard let identity = policy.reconsider(identity) else {
      throw WireError(.authenticationFailed, "the client couldn't prove its identity")
    }
    return identity
  }

  /// The finding for clients of another node.
  ///
  /// - Parameter isProven: whether the peer has proved that it is a node of the cluster.
  func finding(vouchedFor credentials: Credentials, isProven: Bool) -> Finding {
    guard isProven else {
      return Finding(
        WireError(.authenticationFailed, "the client couldn't prove that it is a node of the cluster"))
    }
    let (policy, generation) = state.withLock { ($0.policy, $0.generation) }
    return Finding(
      Result { () throws(WireError) in try policy.identity(vouchedFor: credentials) }, generation: generation)
  }

  // MARK: Attempts

  /// Queues credentials for verification.
  ///
  /// - Parameters:
  ///   - clientID: the identifier by which the client calls itself.
  ///   - completion: called once, on the authenticator's loop, unless the attempt is abandoned or the broker stops.
  /// - Throws: ``ErrorCode/tooManyAttempts``; ``ErrorCode/authenticationFailed`` for a link by another protocol than HTTP.
  func attempt(
    _ credentials: Credentials, of clientID: String, by peer: SocketAddress, _ security: StreamSecurity?,
    completion: @escaping @Sendable (Finding) -> Void
  ) throws(WireError) -> Attempt {
    if SignedLink.isLink(credentials) {
      guard case .door(.http, _, _, _) = peer else {
        throw WireError(
          .authenticationFailed, "signed links are addresses for HTTP; connect with a user or a token")
      }
    }
    let now = loop.readClock()
    let attempt = state.withLock { state -> Attempt? in
      state.lastNumber += 1
      let attempt = Attempt(
        number: state.lastNumber, peer: peer, credentials: credentials, clientID: clientID,
        security: security,
        completion: completion)
      let standing = state.known.standing(
        of: credentials.user, from: PeerOrigin(peer),
        hasFailed: state.limiter.hasFailed(peer.host, at: now.nanoseconds))
      let isAdded = state.queue.add(
        attempt, number: attempt.number, from: Line(attempt), standing: standing)
      return isAdded ? attempt : nil
    }
    guard let attempt else {
      throw WireError(
        .tooManyAttempts, "too many clients are waiting to be authenticated; try again later")
    }
    wake()
    return attempt
  }

  /// Removes an attempt whose result is no longer needed.
  func abandon(_ attempt: Attempt) {
    state.withLock { state in
      state.queue.remove(attempt.number, from: Line(attempt))
      state.slowed.remove(attempt.number)
    }
  }

  private func wake() {
    let wasBusy = state.withLock { state in
      defer { state.isBusy = true }
      return state.isBusy
    }
    if !wasBusy { loop.execute { [self] in work() } }
  }

  /// Verifies one attempt. The next one follows in another job, so that other jobs of the loop run in between.
  private func work() {
    let now = loop.now
    let (next, policy, generation) = state.withLock { state in
      let next = state.queue.next { attempt in
        let delay = state.limiter.delay(of: attempt, at: now)
        if delay > .zero, state.slowed.insert(attempt.number).inserted { metrics.add(.slowedAuthentications) }
        return delay
      }
      if case .attempt(let attempt, _) = next {
        state.slowed.remove(attempt.number)
      } else {
        state.isBusy = false
      }
      return (next, state.policy, state.generation)
    }
    switch next {
    case .none: break
    case .wait(let delay): sleep(until: now + delay)
    case .attempt(let attempt, _):
      let result = verify(policy, attempt.credentials, attempt.clientID, attempt.security, loop.wallClock)
      state.withLock { $0.note(attempt, result, at: loop.now) }
      attempt.completion(Finding(result, generation: generation))
      loop.execute { [self] in work() }
    }
  }

  private func sleep(until time: MonotonicTime) {
    let timer = loop.schedule(at: time) { [weak self] in self?.wake() }
    let former = state.withLock { state in
      defer { state.timer = timer }
      return state.timer
    }
    if let former { loop.cancel(former) }
  }
}

extension AttemptLimiter {
  fileprivate func delay(of attempt: Authenticator.Attempt, at now: MonotonicTime) -> Duration {
    attempt.isGuess ? delay(for: attempt.peer.host, at: now.nanoseconds) : .zero
  }
}
