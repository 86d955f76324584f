/// How a server presents itself over TLS, and whom it lets in.
public struct TLSServerOptions: Hashable, Sendable {
  /// Whether clients show certificates of their own.
  public enum ClientCertificates: String, Hashable, Sendable, CaseIterable {
    /// They aren't asked.
    case off
    /// They are asked. One that is shown must be good; who shows none is let in without a name.
    case optional
    /// Who shows none is turned away.
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
