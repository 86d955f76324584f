import COpenSSL
import Glibc

/// OpenSSL's settings for connections of one kind: versions, ciphers, certificates.
///
/// Unchecked: changed by its creator only; connections on any thread refer to it, and OpenSSL counts references atomically.
@safe
final class TLSContext: @unchecked Sendable {
  /// The protocol name in the handshake of both sides, so that a connection to the port of another TLS service fails.
  static let applicationProtocolName = "sluice/1"
  static let applicationProtocol: [UInt8] = Array(applicationProtocolName.utf8)
  /// The same with its length, as it is sent.
  static let protocolList: [UInt8] = [UInt8(applicationProtocol.count)] + applicationProtocol

  let pointer: OpaquePointer
  /// For a server that distinguishes nodes of a cluster from clients. Set before the first connection.
  var peers: PeerAuthorities?

  init(_ method: OpaquePointer) throws(TLSSetupError) {
    ErrorQueue.clear()
    guard let pointer = unsafe SSL_CTX_new(method) else {
      throw TLSSetupError("OpenSSL can't be set up: \(ErrorQueue.takeText())")
    }
    unsafe self.pointer = unsafe pointer
    unsafe sluice_ssl_ctx_harden(pointer)
    // An idle connection keeps no buffers. Ciphertext is always taken, so there are no partial writes.
    unsafe sluice_ssl_ctx_set_mode(pointer, Int(SSL_MODE_RELEASE_BUFFERS))
    // A read takes a whole record and the next one's head rather than first the one and then the other.
    unsafe sluice_ssl_ctx_set_read_ahead(pointer, 1)
    guard unsafe sluice_ssl_ctx_set_min_version(pointer, TLS1_2_VERSION) == 1,
      unsafe SSL_CTX_set_cipher_list(pointer, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
    else { throw TLSSetupError("OpenSSL has no TLS 1.2 with AES-GCM: \(ErrorQueue.takeText())") }
  }

  deinit {
    unsafe SSL_CTX_free(pointer)
  }

  /// Uses a certificate, with those between it and an authority behind it in the file, and its key.
  func use(certificate: String, key: String) throws(TLSSetupError) {
    try Self.checkReadable(certificate)
    try Self.checkReadable(key)
    ErrorQueue.clear()
    guard unsafe SSL_CTX_use_certificate_chain_file(pointer, certificate) == 1 else {
      throw TLSSetupError(
        file: certificate,
        "holds no certificate that can be used (\(ErrorQueue.takeText())); it has to be in PEM, with -----BEGIN CERTIFICATE-----"
      )
    }
    // A passphrase is noted, rather than asked for at a terminal.
    var needsPassphrase = false
    let result = unsafe withUnsafeMutablePointer(to: &needsPassphrase) { flag in
      unsafe SSL_CTX_set_default_passwd_cb(pointer) { _, _, _, flag in
        unsafe flag?.assumingMemoryBound(to: Bool.self).pointee = true
        return 0
      }
      unsafe SSL_CTX_set_default_passwd_cb_userdata(pointer, flag)
      defer { unsafe SSL_CTX_set_default_passwd_cb_userdata(pointer, nil) }
      return unsafe SSL_CTX_use_PrivateKey_file(pointer, key, SSL_FILETYPE_PEM)
    }
    guard result == 1 else {
      let reason = ErrorQueue.reason(in: ERR_LIB_X509)
      let text = ErrorQueue.takeText()
      if needsPassphrase {
        throw TLSSetupError(
          file: key, "is behind a passphrase, which the program can't ask for; remove it with openssl pkey")
      }
      if reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH {
        throw Self.mismatch(key: key, certificate: certificate)
      }
      throw TLSSetupError(
        file: key,
        "holds no key that can be used (\(text)); it has to be in PEM, with -----BEGIN PRIVATE KEY-----")
    }
    guard unsafe SSL_CTX_check_private_key(pointer) == 1 else {
      ErrorQueue.clear()
      throw Self.mismatch(key: key, certificate: certificate)
    }
  }

  private static func mismatch(key: String, certificate: String) -> TLSSetupError {
    TLSSetupError(
      file: key, "isn't the key of the certificate in '\(certificate)'; name the two that belong together")
  }

  /// Trusts the authorities in a file.
  func trust(authorities file: String) throws(TLSSetupError) {
    try Self.checkReadable(file)
    ErrorQueue.clear()
    guard unsafe SSL_CTX_load_verify_file(pointer, file) == 1 else {
      throw TLSSetupError(
        file: file,
        "holds no authority's certificate (\(ErrorQueue.takeText())); it has to be in PEM, with -----BEGIN CERTIFICATE-----"
      )
    }
  }

  /// Has the peer asked for a certificate, of which nothing is checked here: ``peers`` finds out afterwards what it is worth.
  func askForCertificate() {
    unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER) { _, _ in 1 }
  }

  /// When the certificate in use ends, in milliseconds since 1970.
  var expires: Int64? {
    unsafe SSL_CTX_get0_certificate(pointer).flatMap { unsafe Certificate.expiry($0) }
  }

  /// For a missing file, OpenSSL only reports that it contains no PEM.
  private static func checkReadable(_ file: String) throws(TLSSetupError) {
    // A zero byte would end the name early, and another file be read.
    guard !file.isEmpty, !file.utf8.contains(0) else {
      throw TLSSetupError(file: file, "is no file's name")
    }
    let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw TLSSetupError(file: file, unsafe "can't be read: \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
      throw TLSSetupError(file: file, "is a directory; name the file in it")
    }
  }

  /// Which users beside its owner may read a file, as a warning; nil when none may.
  static func exposure(ofKey file: String) -> String? {
    var status = stat()
    guard unsafe stat(file, &status) == 0, status.st_mode & 0o007 != 0 else { return nil }
    return "'\(file)' holds a private key, and every user of this machine can read it; chmod 600 it"
  }
}
