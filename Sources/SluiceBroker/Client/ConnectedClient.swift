import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// The client of a connection: its name, its identity with its permissions, and the account that it shares with the identity's other connections.
// @unchecked: belongs to the connection's loop. Other threads only pass it to jobs of that loop.
final class ConnectedClient: @unchecked Sendable {
  /// The identity if the broker has a policy, and the attempt to authenticate.
  private final class Admission {
    /// Without permissions until the handshake is complete.
    var identity = Identity(name: "", proof: .none, permissions: .nothing)
    /// The running verification of the credentials of HELLO or AUTHENTICATE.
    var attempt: Authenticator.Attempt?
  }

  private enum Origin {
    case stream(any ByteStream)
    /// The address of a visitor of the admin listener.
    indirect case visitor(SocketAddress)
  }

  /// The number of its connection.
  let connection: UInt64
  let core: BrokerCore
  private let origin: Origin
  /// The name that the client has sent in HELLO; empty before.
  var name = ""
  /// Whether it is another node of the cluster, on behalf of clients that are connected there.
  var isNode = false
  /// Created at the first look-up of a topic for a publication or subscription, so that an idle client has none.
  private(set) lazy var quota = TopicQuota(keeper)
  /// The rest of the budget for its frames in this turn.
  @safe @exclusivity(unchecked) var workBudget = WorkBudget()
  /// The rates that the client's connections share; nil before the handshake is complete.
  private(set) var account: IdentityAccount?
  /// The account of the client's identity or address, which pays for topics, groups, cursors and producers; nil before the handshake is complete.
  private var owner: KeptAccount?
  /// The account of the connection.
  private(set) lazy var kept = KeptAccount(
    ofConnectionOf: keeper, bytes: KeptCost.connection + name.utf8.count)
  /// Nil for a broker whose clients don't authenticate.
  private let admission: Admission?

  init(connection: UInt64, stream: any ByteStream, core: BrokerCore) {
    self.connection = connection
    origin = .stream(stream)
    self.core = core
    admission = core.authenticator == nil ? nil : Admission()
  }

  /// A user without a connection, whose identity was verified elsewhere. Its requests are checked and reported like a client's.
  init(visitor identity: Identity, from peer: SocketAddress, named name: String, core: BrokerCore) {
    connection = 0
    origin = .visitor(peer)
    self.core = core
    self.name = name
    admission = core.authenticator == nil ? nil : Admission()
    admission?.identity = identity
  }

  /// The client's address.
  var peer: SocketAddress {
    switch origin {
    case .stream(let stream): stream.peer
    case .visitor(let peer): peer
    }
  }

  /// The encryption of the connection.
  var security: StreamSecurity? {
    if case .stream(let stream) = origin { stream.security } else { nil }
  }

  /// Anonymous if the broker has no policy. Has no permissions before the handshake is complete.
  var identity: Identity { admission?.identity ?? .anonymous }

  var permissions: Permissions { admission?.identity.permissions ?? .everything }

  // MARK: Events

  /// The description of the client in events.
  private var described: BrokerEvent.Client {
    BrokerEvent.Client(connection: connection, name: name, identity: identity.name, peer: peer)
  }

  /// Reports an event of this client.
  func report(_ event: (BrokerEvent.Client) -> BrokerEvent) { core.configuration.report(event(described)) }

  /// Reports that a limit has ended one of the client's streams.
  func reportRefusal(_ error: WireError) { report { .refused($0, peer: $0.peer, error) } }

  // MARK: The account

  /// Joins the account of an identity, which limits its connections and contains the rates that they share.
  func enter(_ identity: String, now: MonotonicTime) throws(WireError) {
    account = try core.accounts.enter(identity, at: now)
  }

  /// The account that is charged for the topics, groups, cursors and producers that the client creates.
  var keeper: KeptAccount { owner ?? core.memory.accounts.account(of: keptOwner) }

  /// Begins to charge the client's identity, or its address without one. Called when the handshake is complete.
  func beginKeeping() {
    guard owner == nil else { return }
    owner = core.memory.accounts.enter(keptOwner)
    _ = kept
  }

  private var keptOwner: KeptOwner {
    if case .stream(let stream) = origin, stream.isOwnPart { return .broker }
    if !identity.name.isEmpty { return .identity(identity.name) }
    if isNode { return .nodes }
    return PeerOrigin(peer).map { .address($0) } ?? .unixSockets
  }

  /// Leaves the accounts, and abandons a running verification, when the connection ends.
  func leave(now: MonotonicTime) {
    if let attempt = admission?.attempt.take() { core.authenticator?.abandon(attempt) }
    if let account = account.take() { core.accounts.leave(account, at: now) }
    if let owner = owner.take() { core.memory.accounts.leave(owner) }
  }

  // MARK: Authentication

  /// Verifies credentials. If too many attempts wait, the result is an error, which ends the connection or the request.
  ///
  /// - Parameter resume: calls its argument on the connection's loop, unless the connection has closed by then.
  func verify(
    _ credentials: Credentials,
    resume: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
    _ body: @escaping @Sendable (Authenticator.Finding) -> Void
  ) {
    guard let authenticator = core.authenticator, let admission else { return }
    do {
      admission.attempt = try authenticator.attempt(credentials, of: name, by: peer, security) {
        [self] finding in
        resume { [self] in
          // A closing connection has abandoned the attempt.
          if self.admission?.attempt.take() != nil { body(finding) }
        }
      }
    } catch {
      body(Authenticator.Finding(error))
    }
  }

  /// Sets the identity that the credentials of HELLO have proved.
  func authenticated(
    _ finding: Authenticator.Finding, _ credentials: Credentials, now: MonotonicTime
  ) throws(WireError) {
    guard let admission else { return }
    let identity = try identity(in: finding, credentials, isRenewal: false)
    try enter(identity.name, now: now)
    admission.identity = identity
    report { .authenticated($0, by: identity.proof, isRenewal: false) }
  }

  /// Returns the identity that the credentials of AUTHENTICATE have proved. It must have the name of the client's present identity.
  func renewed(
    _ finding: Authenticator.Finding, _ credentials: Credentials
  ) throws(WireError) -> Identity {
    let identity = try identity(in: finding, credentials, isRenewal: true)
    guard identity.hasName(of: self.identity) else {
      let error = WireError(
        .authenticationFailed,
        "the new credentials are of another identity than the connection's; open a new connection to change it"
      )
      report { .notAuthenticated($0, claim: identity.name, error, isRenewal: true) }
      throw error
    }
    report { .authenticated($0, by: identity.proof, isRenewal: true) }
    return identity
  }

  private func identity(
    in finding: Authenticator.Finding, _ credentials: Credentials, isRenewal: Bool
  ) throws(WireError) -> Identity {
    guard let authenticator = core.authenticator else { return .anonymous }
    do {
      return try authenticator.identity(finding)
    } catch {
      core.metrics.add(error.code == .tooManyAttempts ? .refusedAuthentications : .failedAuthentications)
      report { .notAuthenticated($0, claim: credentials.user, error, isRenewal: isRenewal) }
      throw error
    }
  }

  /// Whether the client's credentials have expired.
  func hasExpired(wallClock: Int64) -> Bool {
    guard let expires = admission?.identity.expires, wallClock >= expires else { return false }
    core.metrics.add(.expiredCredentials)
    report { .expired($0) }
    return true
  }

  /// Returns the identity under the broker's present policy; nil when it may no longer be connected.
  func reconsidered() -> Identity? {
    guard let authenticator = core.authenticator, let admission else { return identity }
    if let identity = authenticator.reconsider(admission.identity) { return identity }
    core.metrics.add(.revokedConnections)
    report { .revoked($0) }
    return nil
  }

  /// Replaces the client's identity. Returns whether its permissions differ.
  func adopt(_ identity: Identity) -> Bool {
    guard let admission else { return false }
    let former = admission.identity.permissions
    admission.identity = identity
    return identity.permissions != former
  }
}

extension Identity {
  /// The expiry in the notation of WELCOME.
  var wireExpiry: UInt64 { expires.map { UInt64(clamping: $0) } ?? Authenticated.never }
}
