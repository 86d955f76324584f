import SluiceTLS

/// An Ed25519 key pair in the notation of NATS: base32 with a letter for the kind and a checksum.
///
/// ```text
/// seed     S U …   5 bits "seed", 5 bits "user", 32 bytes, CRC-16     58 characters
/// public   U …     8 bits "user", 32 bytes, CRC-16                    56 characters
/// ```
public struct NKey: Sendable {
  /// The purpose of a key. Clients prove their identity with keys of users.
  public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
    case user = 160
    case account = 0
    case server = 104
    case cluster = 16
    case `operator` = 112
  }

  public let kind: Kind
  /// The public key, which the server's settings or the account's list of users contain.
  public let publicText: String
  private let key: PrivateKey

  private static let seedPrefix: UInt8 = 144

  /// Parses a seed, such as `SUAC…`. Surrounding blanks are ignored.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidCredentials``. The message doesn't contain the seed.
  public init(seed text: some StringProtocol) throws(NATSError) {
    let bytes = try Self.decode(text, of: "a seed")
    guard bytes.count == 34, bytes[0] & 0xF8 == Self.seedPrefix else {
      throw NATSError(
        .invalidCredentials,
        "a seed begins with S and has 58 characters, and this is another text; use the seed, not the public key"
      )
    }
    guard let kind = Kind(rawValue: (bytes[0] & 7) << 5 | (bytes[1] & 0xF8) >> 3) else {
      throw NATSError(
        .invalidCredentials,
        "the seed is for a kind of key that isn't known; use a user's, which begins with SU")
    }
    self.kind = kind
    do {
      key = try PrivateKey(ed25519Seed: Array(bytes[2...]))
    } catch {
      throw NATSError(.invalidCredentials, "the seed can't be used: it is \(error)")
    }
    guard let publicBytes = key.ed25519Public else {
      throw NATSError(.invalidCredentials, "OpenSSL can't make the public key of the seed")
    }
    publicText = Self.encode([kind.rawValue] + publicBytes)
  }

  /// Signs a message. A signature has 64 bytes.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidCredentials`` when OpenSSL fails.
  public func sign(_ message: [UInt8]) throws(NATSError) -> [UInt8] {
    guard let signature = key.sign(message) else {
      throw NATSError(.invalidCredentials, "OpenSSL can't sign with this key")
    }
    return signature
  }

  // MARK: Text

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// The bytes without their checksum.
  static func decode(_ text: some StringProtocol, of what: String) throws(NATSError) -> [UInt8] {
    var bytes: [UInt8] = []
    var (buffer, bits): (UInt32, Int) = (0, 0)
    let blanks: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
    var rest = Array(text.utf8)[...]
    while let last = rest.last, blanks.contains(last) { rest.removeLast() }
    while let first = rest.first, blanks.contains(first) { rest.removeFirst() }
    guard rest.count <= 128 else {
      throw NATSError(.invalidCredentials, "\(what) has 58 characters at most, and this has \(rest.count)")
    }
    for character in rest {
      guard let value = alphabet.firstIndex(of: character) else {
        throw NATSError(
          .invalidCredentials, "\(what) has only capital letters and the digits 2 to 7; copy it again")
      }
      buffer = buffer << 5 | UInt32(value)
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
      }
    }
    guard bits < 5, buffer & (1 << UInt32(bits) - 1) == 0, bytes.count > 2 else {
      throw NATSError(.invalidCredentials, "\(what) was cut; copy it again")
    }
    let sum = UInt16(bytes[bytes.count - 2]) | UInt16(bytes[bytes.count - 1]) << 8
    bytes.removeLast(2)
    guard checksum(bytes) == sum else {
      throw NATSError(
        .invalidCredentials, "\(what) has a wrong checksum: a character was changed; copy it again")
    }
    return bytes
  }

  static func encode(_ content: [UInt8]) -> String {
    let sum = checksum(content)
    let bytes = content + [UInt8(truncatingIfNeeded: sum), UInt8(truncatingIfNeeded: sum >> 8)]
    var text: [UInt8] = []
    var (buffer, bits): (UInt32, Int) = (0, 0)
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(buffer >> UInt32(bits) & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << UInt32(5 - bits) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// The checksum CRC-16/XMODEM: polynomial 0x1021, initial value 0.
  static func checksum(_ bytes: [UInt8]) -> UInt16 {
    var sum: UInt16 = 0
    for byte in bytes {
      sum ^= UInt16(byte) << 8
      for _ in 0..<8 { sum = sum & 0x8000 != 0 ? sum << 1 ^ 0x1021 : sum << 1 }
    }
    return sum
  }
}
