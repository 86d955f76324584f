import SluiceWire

/// The identity of a connection's client, and its permissions.
public struct Identity: Hashable, Sendable {
  /// What proved it.
  public enum Proof: Hashable, Sendable {
    /// The broker doesn't authenticate clients.
    case none
    case password
    /// Signed with the key of that id.
    case token(key: String)
    case certificate
  }

  /// At most 255 bytes; empty where the broker doesn't authenticate clients. To be compared with ``hasName(of:)``.
  public var name: String
  public var proof: Proof
  public var permissions: Permissions
  /// Whether the permissions came with the proof, in a token, and don't change with the broker's own lists.
  public var carriesPermissions: Bool
  /// When it ends, in milliseconds since 1970; nil for never.
  public var expires: Int64?
  /// What was proved, by a fingerprint: a user may get another password, and a key's id be given to another key.
  let basis: [UInt8]

  public init(
    name: String, proof: Proof, permissions: Permissions, carriesPermissions: Bool = false,
    expires: Int64? = nil
  ) {
    self.init(
      name: name, proof: proof, permissions: permissions, carriesPermissions: carriesPermissions,
      expires: expires, basis: [])
  }

  init(
    name: String, proof: Proof, permissions: Permissions, carriesPermissions: Bool = false,
    expires: Int64? = nil, basis: [UInt8]
  ) {
    self.name = name
    self.proof = proof
    self.permissions = permissions
    self.carriesPermissions = carriesPermissions
    self.expires = expires
    self.basis = basis
  }

  /// Whether it has the same name, byte by byte, as it must when credentials are renewed: see ``NameTable``.
  public func hasName(of other: Identity) -> Bool {
    name.utf8.elementsEqual(other.name.utf8)
  }

  /// Any client of a broker that doesn't authenticate them; may do everything.
  public static let anybody = Identity(name: "", proof: .none, permissions: .everything)
}
