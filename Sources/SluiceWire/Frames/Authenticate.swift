/// AUTHENTICATE: renews the credentials of a connection. Answered by ``Authenticated`` or ``Fault`` on the same stream.
///
/// ```
/// credentials
/// ```
///
/// They must be of the same identity as before. When they are refused the former ones hold on, until they expire.
public struct Authenticate: LaidOutFrame {
  public static let type = FrameType.authenticate

  public var credentials: Credentials

  public init(_ credentials: Credentials) {
    self.credentials = credentials
  }

  public static let layout = FrameLayout(Self.init, Field.part(\Self.credentials, Credentials.layout))
}

/// AUTHENTICATED: the connection's new credentials hold.
///
/// ```
/// string identity · u64 expires
/// ```
public struct Authenticated: LaidOutFrame {
  public static let type = FrameType.authenticated
  /// In place of a time: never.
  public static let never = UInt64.max

  /// The name under which the broker has authenticated the client.
  public var identity: String
  /// When that ends, in milliseconds since 1970; ``never`` for never.
  public var expires: UInt64

  public init(identity: String, expires: UInt64 = never) {
    self.identity = identity
    self.expires = expires
  }

  public static let layout = FrameLayout(
    Self.init, Field.string("AUTHENTICATED identity", limit: Limits.name, \Self.identity),
    Field.integer("AUTHENTICATED expires", \Self.expires))
}
