import COpenSSL
import Glibc
import SluiceIO

/// The reason why a TLS connection has failed.
struct TLSFault: Error {
  enum Kind {
    /// The transport's own failure.
    case transport(IOError)
    /// The transport ended where TLS hadn't.
    case truncated
    /// The peer doesn't speak TLS at all.
    case notTLS
    /// A certificate wasn't good enough, ours or the peer's.
    case certificate
    case broken
  }

  let kind: Kind
  private let reason: String

  init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  init(_ error: IOError) {
    self.init(.transport(error), "")
  }

  /// As an error of a stream that was doing `action`.
  func error(_ action: String, inHandshake: Bool) -> IOError {
    switch kind {
    case .transport(let error): return error
    case .truncated where inHandshake:
      return IOError(
        action: action, code: IOError.tlsFailed,
        reason: "the peer closed the connection in the middle of the TLS handshake; does it speak TLS there?")
    case .truncated:
      return IOError(
        action: action, code: IOError.tlsFailed,
        reason: "the connection ended without TLS's end: something may be missing")
    case .certificate: return IOError(action: action, code: IOError.certificateRefused, reason: reason)
    case .notTLS, .broken: return IOError(action: action, code: IOError.tlsFailed, reason: reason)
    }
  }
}

extension TLSFault {
  /// OpenSSL's errors of the last call. Empties its queue.
  init(of engine: TLSEngine) {
    let reason = ErrorQueue.reason(in: ERR_LIB_SSL)
    let text = ErrorQueue.takeText()
    let isServer = engine.isServer
    let peer = isServer ? "client" : "server"
    switch reason {
    case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST,
      SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_BAD_RECORD_TYPE:
      self.init(
        .notTLS,
        isServer
          ? "the client doesn't speak TLS; it has to connect to tls://"
          : "the server doesn't speak TLS there; connect to it without tls://, or to its TLS port")
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      self.init(.certificate, Self.verification(engine))
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      self.init(.certificate, "the client sent no certificate, and this server requires one")
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      self.init(.certificate, "the server requires a client certificate; name one, and its key")
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      self.init(.certificate, "the \(peer) doesn't trust the authority that signed our certificate")
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      self.init(.certificate, "the \(peer) finds that our certificate has expired")
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,
      SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      self.init(.certificate, "the \(peer) refuses our certificate (\(text))")
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      self.init(.broken, "the \(peer) speaks neither TLS 1.2 nor 1.3, or no TLS at all")
    case SSL_R_NO_APPLICATION_PROTOCOL, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
      self.init(
        .broken,
        isServer
          ? "the client names no protocol by ALPN that is spoken on this port"
          : "the server speaks TLS, but not sluice/1 in it; is it a Sluice broker?")
    default:
      self.init(.broken, "TLS fails: \(text)")
    }
  }

  /// The fault of the peer's certificate.
  private static func verification(_ engine: TLSEngine) -> String {
    let code = unsafe SSL_get_verify_result(engine.ssl)
    if engine.isServer {
      switch Int32(code) {
      case X509_V_ERR_CERT_HAS_EXPIRED: return "the client's certificate has expired"
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
        X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return "the client's certificate isn't signed by an authority that is trusted with those of clients"
      default: return "the client's certificate is refused: \(text(code))"
      }
    }
    switch Int32(code) {
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
      let hosts = engine.refusedCertificate?.hosts ?? ""
      return
        "the server's certificate is for \(hosts.isEmpty ? "no host" : hosts), not for the one connected to; "
        + "connect by a name that it is for, or say which one is expected"
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the server's certificate, or its authority's, has expired; it has to be renewed there"
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the server's certificate isn't valid yet; is this machine's clock right?"
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
      X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return
        "the server's certificate isn't signed by an authority that is trusted here (\(text(code))); "
        + "name the file with its authority's certificate"
    default:
      return "the server's certificate is refused: \(text(code))"
    }
  }

  private static func text(_ code: Int) -> String {
    unsafe X509_verify_cert_error_string(code).map { unsafe String(cString: $0) } ?? "error \(code)"
  }
}
