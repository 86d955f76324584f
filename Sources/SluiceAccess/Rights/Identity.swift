import SluiceWire

/// The identity of a connection's client, and its permissions.
public struct Identity: Hashable, Sendable {
  /// The proof of it.
  public enum Proof: Hashable, Sendable {
    /// None: the broker doesn't authenticate clients, or it allows anonymous ones.
    case none
    case password
    /// Signed with the key of that id.
    case token(key: String)
    case certificate
    /// Another node of the cluster, where the client has proved it.
    case node
    /// A signed link, by which another identity has given a part of its permissions away.
    indirect case link(LinkGrant)
  }

  /// At most 255 bytes; empty for a client without credentials. To be compared with ``hasName(of:)``.
  public var name: String
  public var proof: Proof
  /// Those of this client: without placeholders.
  public var permissions: Permissions
  /// Whether the permissions came with the proof, in a token, and don't change with the broker's own lists.
  public var carriesPermissions: Bool
  /// When it ends, in milliseconds since 1970; nil for never.
  public var expires: Int64?
  /// The client's identifier, for which ``permissions`` are; empty without one.
  public internal(set) var clientID = ""
  /// Whether other clients of the identity have other permissions.
  var dependsOnClient = false
  /// A fingerprint of the proof: a user may get another password, and a key's ID another key.
  var basis: [UInt8] = []

  public init(
    name: String, proof: Proof, permissions: Permissions, carriesPermissions: Bool = false,
    expires: Int64? = nil
  ) {
    self.name = name
    self.proof = proof
    self.permissions = permissions
    self.carriesPermissions = carriesPermissions
    self.expires = expires
  }

  /// The same with what proved it.
  func based(on basis: [UInt8]) -> Identity {
    var identity = self
    identity.basis = basis
    return identity
  }

  /// The same with permissions of one client.
  func bound(to clientID: String, _ unbound: Permissions) -> Identity {
    var identity = self
    identity.clientID = clientID
    identity.dependsOnClient = unbound.placeholders.contains(.clientID)
    identity.permissions = unbound.bound(to: PermissionSubject(user: name, clientID: clientID))
    return identity
  }

  /// Whether it has the same name, byte by byte, as it must when credentials are renewed: see ``NameTable``.
  public func hasName(of other: Identity) -> Bool {
    name.utf8.elementsEqual(other.name.utf8)
  }

  /// Any client of a broker that doesn't authenticate them; may do everything.
  public static let anonymous = Identity(name: "", proof: .none, permissions: .everything)
}

/// The rules for names of identities.
public enum IdentityRules {
  /// In bytes of UTF-8.
  public static let maximumLength = 255

  /// The mistake in a name, as the end of a sentence; nil for a valid one.
  public static func objection(to name: String) -> String? {
    if name.isEmpty { return "it is empty" }
    if name.utf8.count > maximumLength {
      return "it has \(name.utf8.count) bytes; the limit is \(maximumLength)"
    }
    if name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
      return "it has a control character"
    }
    return nil
  }

  /// The same for the name of a user, which stands at the beginning of a line, before a colon.
  public static func objection(toUser name: String) -> String? {
    if let objection = objection(to: name) { return objection }
    if name.utf8.contains(UInt8(ascii: ":")) { return "it has a colon, which ends a name" }
    if name.utf8.first == UInt8(ascii: "#") { return "it begins with #, as comments do" }
    if name == "*" { return "* stands for all clients" }
    if let first = name.unicodeScalars.first, let last = name.unicodeScalars.last,
      first.properties.isWhitespace || last.properties.isWhitespace
    {
      return "it begins or ends with white space"
    }
    return nil
  }

  /// A name as a message shows it, no longer than a line takes.
  static func shown(_ name: some StringProtocol) -> String { ShownText.line(name, limit: 64) }
}
