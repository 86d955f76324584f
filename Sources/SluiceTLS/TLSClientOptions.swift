/// How a client verifies a server over TLS, and proves its own identity.
public struct TLSClientOptions: Hashable, Sendable {
  /// How a server has to prove its identity.
  public enum Verification: Hashable, Sendable {
    /// Its certificate is signed by a trusted authority, hasn't expired, and is for the name or address connected to.
    case full
    /// Every server is accepted: anyone between client and server can read and change what is sent. For tests and for finding faults only.
    case disabledInsecurely
  }

  /// A file with the certificates of the authorities that are trusted, in PEM; nil for those that the system trusts.
  public var authorities: String?
  /// A file with the client's own certificate, for servers that ask for one, and behind it those between it and the authority, in PEM.
  public var certificate: String?
  /// A file with its private key, in PEM and without a passphrase. Needed with a certificate.
  public var key: String?
  /// The name or address that the server's certificate must be for; nil for the one that is connected to.
  public var serverName: String?
  /// How the server has to prove its identity.
  public var verification = Verification.full

  public init() {}
}
