import COpenSSL
import Glibc
import SluiceIO

/// Failures of TLS as errors of a stream: `code` is the kind, and `reason` says what is wrong.
extension IOError {
  /// The `code` of a failure of TLS itself: the peer doesn't speak it, or not as we do.
  static let tlsFailed = EPROTO
  /// The `code` when the peer's certificate wasn't good enough for us, or ours for the peer.
  static let certificateRefused = EKEYREJECTED

  /// True for a failure of TLS, certificates included.
  public var isTLSFailure: Bool { (code == Self.tlsFailed && reason != nil) || isCertificateRefusal }

  /// True when a certificate wasn't good enough: the peer's for us, or ours for the peer. Trying again won't help.
  public var isCertificateRefusal: Bool { code == Self.certificateRefused && reason != nil }
}

/// Why TLS can't be set up: a file that can't be used, or settings that contradict each other.
public struct TLSSetupError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The subject, such as a file's path; nil if it is no file.
  public var file: String?
  /// The mistake, and the remedy.
  public var problem: String

  public init(file: String? = nil, _ problem: String) {
    self.file = file
    self.problem = problem
  }

  /// "'/etc/sluice/key.pem': isn't the certificate's key; …"
  public var description: String { file.map { "'\($0)': \(problem)" } ?? problem }
}

/// OpenSSL's errors of the calling thread's last call.
enum ErrorQueue {
  /// Clears the queue before a call whose failure is to be reported.
  static func clear() {
    ERR_clear_error()
  }

  /// The reason of the first note, of which the others follow; 0 when there is none, or it is of another library than `library`.
  static func reason(in library: Int32) -> Int32 {
    let code = ERR_peek_error()
    return code != 0 && ERR_GET_LIB(code) == library ? ERR_GET_REASON(code) : 0
  }

  /// The first note in words; empties the queue.
  static func takeText() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0 else { return "OpenSSL doesn't say why" }
    if let text = unsafe ERR_reason_error_string(code) { return unsafe String(cString: text) }
    return "OpenSSL's error \(code)"
  }
}
