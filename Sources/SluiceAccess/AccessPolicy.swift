import SluiceWire

/// Which clients may connect to a broker, and what they may do: users, keys of tokens, permissions.
///
/// A value: a broker that gets another one applies it to its connections as well.
public struct AccessPolicy: Sendable {
  /// Permissions by the identity's name, in addition to ``commonPermissions``.
  public var permissions: NameTable<Permissions> = [:]
  /// The permissions of every authenticated identity.
  public var commonPermissions = Permissions.nothing
  /// The users that have a password.
  public var users: Users = [:]
  /// The keys that verify tokens.
  public var tokenKeys: TokenKeys = [:]
  /// The key that signs links.
  public var linkKey = LinkKey.ofProcess
  /// The name under which ``permissions`` has those of clients without credentials; nil where such clients are refused. They have no other permissions, and
  /// an empty name.
  public var anonymous: String?
  /// Whether the name in a client's certificate must be a user's, or stand in ``permissions``; else every client with a valid certificate may connect.
  public var certificatesMustBeListed = false

  public init() {}

  /// Authenticates a client. Verifying a password takes tens of milliseconds by design: not for an event loop.
  ///
  /// - Parameters:
  ///   - credentials: the client's claim.
  ///   - clientID: the identifier by which the client calls itself, for permissions that depend on it; empty without one.
  ///   - peerName: the name in the client's certificate, which was checked.
  ///   - peerExpires: when that certificate ends, in milliseconds since 1970.
  ///   - now: the wall clock, in milliseconds since 1970.
  /// - Throws: `authenticationRequired`, `authenticationFailed` or `credentialsExpired`. Neither the message nor the
  ///   time shows whether the user is unknown or the password wrong.
  public func authenticate(
    _ credentials: Credentials, clientID: String = "", peerName: String?, peerExpires: Int64?, now: Int64
  ) throws(WireError) -> Identity {
    switch credentials.method {
    case .password: try user(credentials.user, password: credentials.secret, clientID)
    case .node:
      throw WireError(.authenticationFailed, "the client couldn't prove that it is a node of the cluster")
    case .token where SignedLink.isLink(credentials):
      try holder(ofLink: credentials.secret, now: now)
    case .token: try bearer(of: credentials.secret, clientID, now: now)
    case .none: try certificate(of: peerName, expires: peerExpires, clientID, now: now)
    }
  }

  /// The identity of clients of another node, which has proved itself and vouches for them.
  ///
  /// - Throws: `authenticationFailed` for what isn't an identity.
  public func identity(vouchedFor credentials: Credentials) throws(WireError) -> Identity {
    let carried = try CarriedPermissions.decoded(credentials.secret)
    let name = credentials.user
    guard credentials.method == .node,
      name.isEmpty ? anonymous != nil : IdentityRules.objection(to: name) == nil
    else { throw Self.failed }
    if case .rules(let permissions) = carried {
      return Identity(name: name, proof: .node, permissions: permissions, carriesPermissions: true)
    }
    return identity(name, .node, carried.clientID)
  }

  private func user(
    _ name: String, password: String, _ clientID: String
  ) throws(WireError) -> Identity {
    guard let hash = users.prove(password, of: name) else { throw Self.failed }
    return identity(name, .password, clientID).based(on: hash.fingerprint)
  }

  /// An identity with the permissions that the policy gives to it.
  private func identity(
    _ name: String, _ proof: Identity.Proof, _ clientID: String, expires: Int64? = nil
  ) -> Identity {
    Identity(name: name, proof: proof, permissions: .nothing, expires: expires)
      .bound(to: clientID, permissions(of: name))
  }

  private func bearer(of token: String, _ clientID: String, now: Int64) throws(WireError) -> Identity {
    let verified: VerifiedToken
    do {
      verified = try tokenKeys.verify(token, now: now)
    } catch .expired {
      throw WireError(.credentialsExpired, "the token has expired; get a new one")
    } catch {
      throw Self.failed
    }
    let claims = verified.claims
    return Identity(
      name: claims.subject, proof: .token(key: verified.keyID), permissions: .nothing,
      carriesPermissions: claims.permissions != nil, expires: claims.expires
    )
    .bound(to: clientID, claims.permissions ?? permissions(of: claims.subject))
    .based(on: verified.keyFingerprint)
  }

  private func certificate(
    of name: String?, expires: Int64?, _ clientID: String, now: Int64
  ) throws(WireError) -> Identity {
    guard let name else {
      if anonymous != nil { return identity("", .none, clientID) }
      throw WireError(
        .authenticationRequired,
        "this broker requires credentials; give it a user, a token or a certificate")
    }
    if let expires, expires <= now {
      throw WireError(.credentialsExpired, "the client's certificate has expired; get a new one")
    }
    guard isWelcome(certificate: name) else { throw Self.failed }
    return identity(name, .certificate, clientID, expires: expires)
  }

  private func isWelcome(certificate name: String) -> Bool {
    guard IdentityRules.objection(to: name) == nil else { return false }
    return !certificatesMustBeListed || users[name] != nil || permissions[name] != nil
  }

  /// The same for everything that is wrong.
  private static var failed: WireError {
    WireError(
      .authenticationFailed,
      "the client is refused: its user and password, its token or its certificate isn't right"
    )
  }

  /// The permissions of an identity that doesn't carry its own, with their placeholders.
  private func permissions(of name: String) -> Permissions {
    if name.isEmpty { return anonymous.flatMap { permissions[$0] } ?? .nothing }
    return permissions[name].map { commonPermissions.adding($0) } ?? commonPermissions
  }

  /// An identity of another policy under this one: its permissions now; nil if it may no longer be connected.
  ///
  /// That is so when the user is gone or has another password, when the key of its token is gone or another, and when a certificate's name must
  /// be listed and isn't.
  public func reconsider(_ identity: Identity) -> Identity? {
    switch identity.proof {
    case .none: if anonymous == nil { return nil }
    case .password:
      guard let hash = users[identity.name], hash.fingerprint == identity.basis else { return nil }
    case .token(let id):
      guard let key = tokenKeys[id], key.fingerprint == identity.basis else { return nil }
    case .certificate:
      guard isWelcome(certificate: identity.name) else { return nil }
    // The node where the client is connected decides whether it may be.
    case .link(let grant): return holder(grant)
    case .node: if identity.name.isEmpty, anonymous == nil { return nil }
    }
    if identity.carriesPermissions { return identity }
    return identity.bound(to: identity.clientID, permissions(of: identity.name))
  }
}
