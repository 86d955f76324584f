import COpenSSL
import Synchronization

/// How a server presents itself over TLS, and which clients it accepts.
public struct TLSServerOptions: Hashable, Sendable {
  /// Whether clients show certificates of their own.
  public enum ClientCertificates: String, Hashable, Sendable, CaseIterable {
    /// They aren't asked.
    case off
    /// The server requests one from clients. It must be valid; a client without one is accepted without a name.
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
  /// A file with the certificates of authorities that sign only those of a cluster's nodes, in PEM; nil if no peer is a node.
  ///
  /// Nodes show a certificate whatever ``clientCertificates`` is. A peer is a node if its certificate is signed by one of these authorities, and by none of
  /// ``clientAuthorities``. Such a server issues no sessions to resume: they don't contain the authority of the peer's certificate.
  public var nodeAuthorities: String?

  public init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }
}

/// The server's side of TLS: its certificate and rules, which can be replaced while connections are open.
///
/// May be used from any thread.
public final class TLSServer: Sendable {
  private struct Current {
    var options: TLSServerOptions
    /// One for each protocol that is spoken over TLS.
    var contexts: [ApplicationProtocol: TLSContext]
  }

  private let current: Mutex<Current>

  /// How long a client may come back without a full handshake, in seconds.
  private static let resumptionTime = 2 * 60 * 60

  /// Reads the files.
  ///
  /// - Throws: ``TLSSetupError``, which names the file that can't be used.
  public init(_ options: TLSServerOptions) throws(TLSSetupError) {
    current = Mutex(Current(options: options, contexts: [.sluice: try Self.context(options, .sluice)]))
  }

  /// The settings of the next connection.
  public var options: TLSServerOptions { current.withLock { $0.options } }

  /// Reads the files again. Connections that are open stay as they are; new ones get what is in the files now, and none comes
  /// back by a handshake of before.
  ///
  /// - Parameter options: other files and rules for later connections; nil for the same.
  /// - Throws: ``TLSSetupError`` when a file can't be used; everything stays as it was then.
  public func reload(_ options: TLSServerOptions? = nil) throws(TLSSetupError) {
    let options = options ?? self.options
    var contexts: [ApplicationProtocol: TLSContext] = [:]
    for name in current.withLock({ Array($0.contexts.keys) }) {
      contexts[name] = try Self.context(options, name)
    }
    current.withLock { [contexts] in $0 = Current(options: options, contexts: contexts) }
  }

  /// Has the files read for one more protocol. Before connections of it are accepted.
  ///
  /// - Throws: ``TLSSetupError``, which names the file that can't be used.
  func serve(_ name: ApplicationProtocol) throws(TLSSetupError) {
    guard current.withLock({ $0.contexts[name] == nil }) else { return }
    let context = try Self.context(options, name)
    current.withLock { $0.contexts[name] = context }
  }

  /// Warnings about the files, in sentences: a key that other users can read.
  public var warnings: [String] {
    TLSContext.exposure(ofKey: options.key).map { [$0] } ?? []
  }

  /// When the certificate in use ends, in milliseconds since 1970.
  public var expires: Int64? { context(for: .sluice)?.expires }

  /// The TLS context for the next connection of a protocol; nil for a protocol that isn't served.
  func context(for name: ApplicationProtocol) -> TLSContext? { current.withLock { $0.contexts[name] } }

  private static func context(
    _ options: TLSServerOptions, _ name: ApplicationProtocol
  ) throws(TLSSetupError) -> TLSContext {
    let context = try unsafe TLSContext(TLS_server_method())
    try context.use(certificate: options.certificate, key: options.key)
    try ask(clientsOf: context, options)
    // A client that names protocols has to name ours. One that names none may as well be meant.
    unsafe SSL_CTX_set_alpn_select_cb(
      context.pointer,
      { _, chosen, length, offered, offeredLength, name in
        guard let name = unsafe name else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let ours = unsafe Unmanaged<ApplicationProtocol>.fromOpaque(name).takeUnretainedValue()
        let list = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredLength))
        guard let place = unsafe ours.place(in: list) else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        unsafe chosen?.pointee = unsafe offered.map { unsafe $0 + place.lowerBound }
        unsafe length?.pointee = UInt8(place.count)
        return SSL_TLSEXT_ERR_OK
      }, Unmanaged.passUnretained(name).toOpaque())
    // Sessions are in tickets that the client keeps, under a key of this context: an exchanged one takes none of before.
    unsafe sluice_ssl_ctx_set_session_cache_mode(context.pointer, Int(SSL_SESS_CACHE_OFF))
    unsafe SSL_CTX_set_timeout(context.pointer, resumptionTime)
    if options.nodeAuthorities == nil {
      unsafe SSL_CTX_set_num_tickets(context.pointer, 1)
    } else {
      unsafe sluice_ssl_ctx_no_tickets(context.pointer)
    }
    let id = Array("sluice".utf8)
    unsafe SSL_CTX_set_session_id_context(context.pointer, id, UInt32(id.count))
    return context
  }

  private static func ask(clientsOf context: TLSContext, _ options: TLSServerOptions) throws(TLSSetupError) {
    let takesCertificates = options.clientCertificates != .off
    guard options.clientAuthorities != nil || !takesCertificates else {
      throw TLSSetupError(
        "certificates of clients are \(options.clientCertificates.rawValue), but there is no authority that they could be signed by; name a file with its certificate"
      )
    }
    let clients = takesCertificates ? options.clientAuthorities : nil
    let files = [clients, options.nodeAuthorities].compactMap { $0 }
    guard !files.isEmpty else { return }
    // The client learns from their names which of its certificates to show.
    guard let names = unsafe sluice_x509_names_new() else { throw TLSSetupError("out of memory for names") }
    unsafe SSL_CTX_set_client_CA_list(context.pointer, names)
    for file in files {
      try context.trust(authorities: file)
      guard unsafe SSL_add_file_cert_subjects_to_stack(names, file) == 1 else {
        throw TLSSetupError(file: file, "holds no authority's certificate (\(ErrorQueue.takeText()))")
      }
    }
    if let file = options.nodeAuthorities {
      context.peers = PeerAuthorities(
        nodes: try Authorities(file: file),
        clients: try clients.map { file throws(TLSSetupError) in try Authorities(file: file) })
    }
    guard takesCertificates else { return context.askForCertificate() }
    context.verify(
      options.clientCertificates == .required
        ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER)
  }
}

extension TLSServer {
  /// The name in the certificate in use; nil without one.
  public var name: String? { context(for: .sluice).flatMap(\.name) }

  /// Why other nodes of a cluster with the same authorities don't take the certificate in use for a node's; nil if they do.
  public var nodeObjection: String? {
    guard let context = context(for: .sluice), let peers = context.peers else {
      return "no authority of nodes is named"
    }
    return context.nodeObjection(peers)
  }
}

extension TLSContext {
  fileprivate var name: String? {
    guard let certificate = unsafe SSL_CTX_get0_certificate(pointer) else { return nil }
    return unsafe try? Certificate(sharing: certificate).name()
  }

  fileprivate func nodeObjection(_ peers: PeerAuthorities) -> String? {
    guard let certificate = unsafe SSL_CTX_get0_certificate(pointer) else { return "there is no certificate" }
    let chain = unsafe sluice_ssl_ctx_chain(pointer)
    if case .client = unsafe peers.kind(of: certificate, chain: chain) {
      return "an authority that signs clients' certificates has signed it, too"
    }
    for (purpose, word) in [(Authorities.Purpose.server, "server"), (.client, "client")] {
      if let objection = unsafe peers.nodes.objection(to: certificate, chain: chain, as: purpose) {
        return "as a \(word) certificate: \(objection)"
      }
    }
    return nil
  }
}
