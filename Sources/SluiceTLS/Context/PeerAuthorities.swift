import COpenSSL

/// Authorities of one kind, by which certificates are checked beside the handshake.
///
/// Unchecked: OpenSSL locks the store, and nothing here changes it after its files were read.
@safe
final class Authorities: @unchecked Sendable {
  /// The purpose of a certificate, as OpenSSL names it.
  enum Purpose: String {
    case client = "ssl_client"
    case server = "ssl_server"
  }

  private let store: OpaquePointer

  /// - Throws: ``TLSSetupError`` for a file without certificates.
  init(file: String) throws(TLSSetupError) {
    ErrorQueue.clear()
    guard let store = unsafe X509_STORE_new() else {
      throw TLSSetupError("OpenSSL can't be set up: \(ErrorQueue.takeText())")
    }
    unsafe self.store = unsafe store
    guard unsafe X509_STORE_load_file(store, file) == 1 else {
      throw TLSSetupError(file: file, "holds no authority's certificate (\(ErrorQueue.takeText()))")
    }
  }

  deinit {
    unsafe X509_STORE_free(store)
  }

  /// Why these authorities don't vouch for a certificate; nil if they do.
  ///
  /// - Parameter chain: certificates that may be between it and an authority; nil for none.
  func objection(
    to certificate: OpaquePointer, chain: OpaquePointer?, as purpose: Purpose
  ) -> String? {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let check = unsafe X509_STORE_CTX_new() else { return "out of memory" }
    defer { unsafe X509_STORE_CTX_free(check) }
    guard unsafe X509_STORE_CTX_init(check, store, certificate, chain) == 1,
      unsafe X509_STORE_CTX_set_default(check, purpose.rawValue) == 1
    else { return "OpenSSL can't check it" }
    if unsafe X509_verify_cert(check) == 1 { return nil }
    let code = unsafe X509_STORE_CTX_get_error(check)
    return unsafe X509_verify_cert_error_string(Int(code)).map { unsafe String(cString: $0) }
      ?? "OpenSSL's error \(code)"
  }
}

/// Distinguishes nodes of a cluster from clients by the authority that has signed the certificate.
struct PeerAuthorities: Sendable {
  enum Kind {
    case client
    case node
    /// The certificate proves nothing.
    case unknown
  }

  let nodes: Authorities
  /// Nil where clients don't show certificates.
  let clients: Authorities?

  /// - Parameter ssl: the connection on which the peer has proved that the certificate is its own. It isn't resumed.
  func kind(of certificate: Certificate, on ssl: OpaquePointer) -> Kind {
    let chain = unsafe SSL_get_peer_cert_chain(ssl)
    return unsafe kind(of: certificate.pointer, chain: chain)
  }

  func kind(of certificate: OpaquePointer, chain: OpaquePointer?) -> Kind {
    // A certificate of the clients' authority is never a node's.
    if let clients, unsafe clients.objection(to: certificate, chain: chain, as: .client) == nil {
      return .client
    }
    return unsafe nodes.objection(to: certificate, chain: chain, as: .client) == nil ? .node : .unknown
  }
}
