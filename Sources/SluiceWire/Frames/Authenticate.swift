/// AUTHENTICATE: renews the credentials of a connection. Answered by ``Authenticated`` or ``Fault`` on the same stream.
///
/// ```
/// credentials
/// ```
///
/// They must be of the same identity as before. When they are refused the former ones hold on, until they expire.
public struct Authenticate: Frame {
  public static let type = FrameType.authenticate

  public var credentials: Credentials

  public init(_ credentials: Credentials) {
    self.credentials = credentials
  }

  public func encodeBody(into writer: inout ByteWriter) {
    credentials.encode(into: &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    credentials = try Credentials(&reader)
  }
}

/// AUTHENTICATED: the connection's new credentials hold.
///
/// ```
/// string identity · u64 expires
/// ```
public struct Authenticated: Frame {
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

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(identity, limit: Limits.name)
    writer.integer(expires)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    identity = try reader.string("AUTHENTICATED identity")
    expires = try reader.integer("AUTHENTICATED expires")
  }
}
