import COpenSSL
import SluiceIO

/// The differences between the two sides of a TLS connection.
enum TLSSide {
  case server(TLSContext, refused: (@Sendable (SocketAddress, IOError) -> Void)?)
  case client(TLSClient, server: String, port: UInt16)

  var isServer: Bool {
    if case .server = self { true } else { false }
  }

  /// The action that fails if the handshake does.
  func action(_ peer: SocketAddress) -> String {
    isServer ? "shake hands with \(peer)" : "connect to \(peer)"
  }

  func refused(_ peer: SocketAddress, _ error: IOError) {
    if case .server(_, let refused?) = self { refused(peer, error) }
  }

  func makeEngine(_ transport: any ByteStream, _ shared: TLSLoop) -> TLSEngine {
    switch self {
    case .server(let context, _):
      return TLSEngine(context, isServer: true, transport: transport, shared: shared)
    case .client(let client, let server, let port):
      let key = "\(server):\(port)"
      let engine = TLSEngine(client.context, isServer: false, transport: transport, shared: shared) {
        client.sessions.keep($0, for: key)
      }
      unsafe client.prepare(engine.ssl, for: server)
      if let session = client.sessions.session(for: key, at: shared.loop.wallClock) {
        unsafe SSL_set_session(engine.ssl, session.pointer)
      }
      return engine
    }
  }

  /// The protection of a connection that was just established, and the peer's proved identity.
  ///
  /// - Parameter time: now, in milliseconds since 1970.
  /// - Returns: a failure when the peer's certificate has no unambiguous name, or has expired since it was checked.
  func security(of engine: TLSEngine, at time: Int64) -> Result<StreamSecurity, TLSFault> {
    let ssl = unsafe engine.ssl
    var security = unsafe StreamSecurity(
      version: SSL_get_version(ssl).map { unsafe String(cString: $0) } ?? "TLS",
      cipher: unsafe SSL_get_current_cipher(ssl).flatMap { unsafe SSL_CIPHER_get_name($0) }.map {
        unsafe String(cString: $0)
      }
        ?? "")
    guard verifies, let certificate = unsafe Certificate.peer(of: ssl) else { return .success(security) }
    security.peerExpires = certificate.expires
    // A resumed session isn't asked for it again.
    if engine.isResumed, let end = security.peerExpires, end <= time {
      if case .client(let client, let server, let port) = self { client.sessions.forget("\(server):\(port)") }
      return .failure(TLSFault(.certificate, "the peer's certificate has expired"))
    }
    do {
      switch unsafe engine.context.peers?.kind(of: certificate, on: ssl) ?? .client {
      case .client: security.peerName = try certificate.name()
      case .node: security.nodeName = try certificate.name()
      case .unknown: security.peerExpires = nil
      }
    } catch {
      return .failure(
        TLSFault(.certificate, "the name in the peer's certificate is empty, too long, or no text"))
    }
    return .success(security)
  }

  private var verifies: Bool {
    switch self {
    case .server(let context, _): unsafe SSL_CTX_get_verify_mode(context.pointer) != SSL_VERIFY_NONE
    case .client(let client, _, _): client.options.verification == .full
    }
  }
}

extension TLSClient {
  /// Sets the name of the server that a connection is meant for, and has that checked.
  ///
  /// - Parameter server: the host that is connected to.
  func prepare(_ ssl: OpaquePointer, for server: String) {
    let name = options.serverName ?? (server.hasSuffix(".") ? String(server.dropLast()) : server)
    let isAddress = Self.isAddress(name)
    // A server with several certificates chooses by the name; addresses aren't names.
    if !isAddress { _ = unsafe sluice_ssl_set_server_name(ssl, name) }
    guard options.verification == .full else { return }
    let parameters = unsafe SSL_get0_param(ssl)
    unsafe X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    let result =
      unsafe isAddress ? X509_VERIFY_PARAM_set1_ip_asc(parameters, name) : SSL_set1_host(ssl, name)
    // Without a name to check, any certificate would do.
    precondition(result == 1, "OpenSSL takes '\(name)' for no name")
  }
}
