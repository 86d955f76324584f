/// How a client makes sure of a server over TLS, and shows who it is.
public struct TLSClientOptions: Hashable, Sendable {
  /// Whether a server has to prove who it is.
  public enum Verification: Hashable, Sendable {
    /// Its certificate is signed by a trusted authority, hasn't expired, and is for the name or address connected to.
    case full
    /// Whoever answers is believed: what is sent can be read and changed by anybody on the way. For tests and for finding faults only.
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
  /// Whether the server has to prove who it is.
  public var verification = Verification.full

  public init() {}
}
