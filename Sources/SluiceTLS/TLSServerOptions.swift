/// How a server presents itself over TLS, and which clients it accepts.
public struct TLSServerOptions: Hashable, Sendable {
  /// Whether clients show certificates of their own.
  public enum ClientCertificates: String, Hashable, Sendable, CaseIterable {
    /// They aren't asked.
    case off
    /// Clients are asked for one. It must be valid; a client without one is accepted without a name.
    case optional
    /// A client without one is refused.
    case required
  }

  /// A file with the server's certificate, and behind it those between it and the authority, in PEM.
  public var certificate: String
  /// A file with its private key, in PEM and without a passphrase.
  public var key: String
  /// Whether clients show certificates.
  public var clientCertificates = ClientCertificates.off
  /// A file with the certificates of authorities that sign those of clients, in PEM. Needed unless clients show none.
  public var clientAuthorities: String?

  public init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }
}
