import SluiceTLS

/// The key that a broker signs links with.
public struct LinkKey: Sendable {
  private let secret: [UInt8]

  /// In bytes.
  public static let minimumLength = 32

  /// A random key, the same as long as the process runs.
  static let ofProcess = LinkKey(secureRandomBytes(minimumLength))

  init(_ secret: [UInt8]) {
    self.secret = secret
  }

  /// Stands in a link for the fingerprint of a proof, which isn't for the readers of the address.
  func tag(of fingerprint: [UInt8]) -> [UInt8] {
    Array(hmacSHA256(Array("sluice link proof".utf8) + fingerprint, key: secret).prefix(16))
  }

  func signature(of bytes: [UInt8]) -> [UInt8] { hmacSHA256(bytes, key: secret) }

  /// Reads a file of at least ``minimumLength`` bytes; a line break at its end doesn't count. Blocks.
  static func read(_ path: String, warn: (String) -> Void) throws(AccessFileError) -> LinkKey {
    let file = try AccessFile(path)
    if file.isReadByOthers {
      warn(
        "every user of this machine can read \(path), and sign links with it; chmod 600 it, and make another")
    }
    let bytes = try file.contents(limit: TokenKeyDirectory.fileLimit)
    do {
      return LinkKey(try TokenKey.secretBytes(bytes))
    } catch {
      throw AccessFileError(path, error.description)
    }
  }
}
