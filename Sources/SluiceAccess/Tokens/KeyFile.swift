import Glibc
import SluiceTLS

/// Files of keys, read and made.
public enum KeyFile {
  /// A key for signing: a private key in PEM, or a secret.
  ///
  /// - Parameters:
  ///   - path: the file's.
  ///   - warn: called with warnings.
  public static func signer(_ path: String, warn: (String) -> Void) throws(AccessFileError) -> TokenSigner {
    let file = try AccessFile(path)
    if file.isReadByOthers {
      warn(
        "every user of this machine can read \(path), and sign tokens with it; chmod 600 it, and make another key"
      )
    }
    let bytes = try contents(of: file)
    do {
      return try TokenSigner(bytes)
    } catch {
      throw AccessFileError(path, error.description)
    }
  }

  /// A key for verification: a public key in PEM, a secret, or a private key, which contains its public half.
  public static func verifier(_ path: String) throws(AccessFileError) -> TokenKey {
    let bytes = try contents(of: try AccessFile(path))
    do {
      if let key = try? PrivateKey(pem: bytes) { return try .publicKey(pem: key.publicPEM) }
      return try TokenKey(bytes)
    } catch {
      throw AccessFileError(path, error.description)
    }
  }

  private static func contents(of file: AccessFile) throws(AccessFileError) -> [UInt8] {
    try file.contents(limit: TokenKeyDirectory.fileLimit)
  }

  /// Creates a new file.
  ///
  /// - Parameters:
  ///   - path: the file's.
  ///   - bytes: its content.
  ///   - isSecret: whether only the owner may read it.
  public static func make(_ path: String, _ bytes: [UInt8], isSecret: Bool) throws(AccessFileError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isSecret ? 0o600 : 0o644)
    guard descriptor >= 0 else {
      if errno == EEXIST { throw AccessFileError(path, "exists already; remove it, or name another file") }
      throw AccessFileError(path, failing: "cannot be made")
    }
    defer { close(descriptor) }
    guard FileReplacement.write(bytes, to: descriptor), fsync(descriptor) == 0 else {
      let error = AccessFileError(path, failing: "cannot be written")
      unsafe unlink(path)
      throw error
    }
  }

  /// Removes a file that was made in vain.
  public static func discard(_ path: String) {
    unsafe unlink(path)
  }

  /// Makes a file that only the owner may read, or replaces one: a reader gets the old one or the new one.
  public static func replace(_ path: String, with bytes: [UInt8]) throws(AccessFileError) {
    var status = stat()
    let isThere = unsafe stat(path, &status) == 0
    guard !isThere || status.st_mode & S_IFMT == S_IFREG else {
      return try overwrite(path, with: bytes)
    }
    try FileReplacement.replace(path, with: bytes, mode: 0o600, owner: nil)
  }

  /// A terminal, or a pipe.
  private static func overwrite(_ path: String, with bytes: [UInt8]) throws(AccessFileError) {
    let descriptor = unsafe open(path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw AccessFileError(path, failing: "cannot be opened")
    }
    defer { close(descriptor) }
    guard FileReplacement.write(bytes, to: descriptor) else {
      throw AccessFileError(path, failing: "cannot be written")
    }
  }
}
