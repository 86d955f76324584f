import COpenSSL
import Glibc
import Synchronization

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
  /// The name or address that the server's certificate must be for; nil for the one in the connected address.
  public var serverName: String?
  /// How the server has to prove its identity.
  public var verification = Verification.full
  /// The protocol that the client names in the handshake, from 1 to 255 bytes; nil to name none, as servers of another kind expect.
  public var applicationProtocol: String? = TLSContext.applicationProtocolName

  public init() {}
}

/// The client's side of TLS: the authorities it trusts, its own certificate, and the sessions that it keeps to reconnect more quickly.
///
/// May be used from any thread.
public final class TLSClient: Sendable {
  private struct Current {
    var options: TLSClientOptions
    var context: TLSContext
  }

  private let current: Mutex<Current>
  let sessions = SessionCache()

  /// The settings of the next connection.
  public var options: TLSClientOptions { current.withLock { $0.options } }
  var context: TLSContext { current.withLock { $0.context } }

  /// Reads the files.
  ///
  /// - Throws: ``TLSSetupError``, which names the file that can't be used.
  public init(_ options: TLSClientOptions = TLSClientOptions()) throws(TLSSetupError) {
    current = Mutex(Current(options: options, context: try Self.context(options)))
  }

  /// Reads the files again. Connections that are open stay as they are; new ones make full handshakes with what is in the files now.
  ///
  /// - Parameter options: other files and rules for later connections; nil for the same.
  /// - Throws: ``TLSSetupError`` when a file can't be used; everything stays as it was then.
  public func reload(_ options: TLSClientOptions? = nil) throws(TLSSetupError) {
    let options = options ?? self.options
    let context = try Self.context(options)
    current.withLock { $0 = Current(options: options, context: context) }
    sessions.removeAll()
  }

  private static func context(_ options: TLSClientOptions) throws(TLSSetupError) -> TLSContext {
    let context = try unsafe TLSContext(TLS_client_method())
    switch (options.certificate, options.key) {
    case (let certificate?, let key?): try context.use(certificate: certificate, key: key)
    case (nil, nil): break
    case (_?, nil): throw TLSSetupError("there is a certificate of the client's but not its key")
    case (nil, _?): throw TLSSetupError("there is a key of the client's but not its certificate")
    }
    if let name = options.serverName, !Self.isUsable(name) {
      throw TLSSetupError("'\(name)' is no server's name")
    }
    switch options.verification {
    case .disabledInsecurely: break
    case .full:
      context.verify(SSL_VERIFY_PEER)
      if let file = options.authorities {
        try context.trust(authorities: file)
      } else if unsafe SSL_CTX_set_default_verify_paths(context.pointer) != 1 {
        throw TLSSetupError("the system's trusted certificates can't be read: \(ErrorQueue.takeText())")
      }
    }
    if let name = options.applicationProtocol {
      let list = [UInt8(truncatingIfNeeded: name.utf8.count)] + name.utf8
      guard (2...256).contains(list.count),
        unsafe SSL_CTX_set_alpn_protos(context.pointer, list, UInt32(list.count)) == 0
      else { throw TLSSetupError("OpenSSL can't name the protocol '\(name)': \(ErrorQueue.takeText())") }
    }
    // Sessions are kept by us, by server.
    unsafe sluice_ssl_ctx_set_session_cache_mode(
      context.pointer, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
    unsafe SSL_CTX_sess_set_new_cb(context.pointer) { ssl, session in
      guard let ssl = unsafe ssl, let session = unsafe session else { return 0 }
      return unsafe TLSEngine.of(ssl)?.keep(session: session) == true ? 1 : 0
    }
    return context
  }

  /// Warnings about the files, in sentences: a key that other users can read.
  public var warnings: [String] {
    options.key.flatMap { TLSContext.exposure(ofKey: $0) }.map { [$0] } ?? []
  }

  /// Forgets the sessions that were kept, so that the next connections make full handshakes. From any thread.
  public func forgetSessions() {
    sessions.removeAll()
  }

  /// Whether OpenSSL, which reads a name up to a zero byte, gets the same name.
  static func isUsable(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 253 && name.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
  }

  /// Whether a host is a numeric address, which certificates name in another way.
  static func isAddress(_ host: String) -> Bool {
    var address = in6_addr()
    return unsafe inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
  }
}
