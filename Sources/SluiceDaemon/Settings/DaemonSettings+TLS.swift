import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceTLS

/// The settings of TLS; unused without a certificate.
struct TLSSettings {
  var certificate: String?
  var key: String?
  var clientAuthorities: String?
  var clientCertificates = TLSServerOptions.ClientCertificates.off
}

extension DaemonSettings {
  /// The broker's certificate, and the authorities of clients' certificates.
  static func tlsSettings() -> [Setting] {
    [
      .path(
        "tls-cert", "FILE", \.tls.certificate,
        "The broker's certificate for tls:// addresses, followed by those up to its authority, in PEM."),
      .path("tls-key", "FILE", \.tls.key, "The private key of --tls-cert, in PEM."),
      .path(
        "tls-client-ca", "FILE", \.tls.clientAuthorities,
        "The certificates of the authorities that sign clients' certificates, in PEM."),
      .choice(
        "tls-client-certs", "off|optional|required", \.tls.clientCertificates,
        "Whether clients may or must authenticate with certificates.",
        ["off": .off, "optional": .optional, "required": .required]),
    ]
  }

  /// The server's side of TLS; nil if no address uses TLS.
  ///
  /// - Throws: `UsageError` for settings that contradict each other.
  func tlsOptions() throws(UsageError) -> TLSServerOptions? {
    let isAdminAlone = !broker.listen.contains(where: \.hasTLS)
    guard let secure = broker.listen.first(where: \.hasTLS) ?? admin.address.flatMap({ $0.hasTLS ? $0 : nil })
    else {
      if let given = givenTLSOption {
        throw UsageError(
          "--\(given): no address has TLS; add one with --listen tls://HOST:PORT or --admin tls://HOST:PORT"
        )
      }
      return nil
    }
    guard let certificate = tls.certificate else {
      throw UsageError(
        "--\(isAdminAlone ? "admin" : "listen"): \(secure) needs a certificate and its key; name them with --tls-cert FILE --tls-key FILE "
          + "(scripts/certs.sh makes some for tests)")
    }
    guard let key = tls.key else {
      throw UsageError("--tls-cert: its private key is missing; name it with --tls-key FILE")
    }
    switch (tls.clientCertificates, tls.clientAuthorities) {
    case (.off, _?):
      throw UsageError(
        "--tls-client-ca: clients aren't asked for certificates; request them with "
          + "--tls-client-certs optional|required")
    case (.optional, nil), (.required, nil):
      throw UsageError(
        "--tls-client-certs: the authority of clients' certificates is missing; name its file with --tls-client-ca FILE"
      )
    default: break
    }
    if tls.clientCertificates == .off, access.authenticatesClients, access.files.users == nil,
      access.files.tokenKeys == nil
    {
      throw UsageError(
        "--auth: no client could authenticate; request certificates with --tls-client-certs required "
          + "--tls-client-ca FILE, or name --users FILE or --token-keys DIR")
    }
    var options = TLSServerOptions(certificate: certificate, key: key)
    options.clientCertificates = tls.clientCertificates
    options.clientAuthorities = tls.clientAuthorities
    options.nodeAuthorities = cluster.peerAuthorities
    return options
  }

  private var givenTLSOption: String? {
    if tls.certificate != nil { return "tls-cert" }
    if tls.key != nil { return "tls-key" }
    if tls.clientAuthorities != nil { return "tls-client-ca" }
    return tls.clientCertificates == .off ? nil : "tls-client-certs"
  }
}
