import Glibc
import SluiceIO

/// TLS's failures as those of a stream: their `code` says of which kind they are, and their `reason` what is wrong.
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
