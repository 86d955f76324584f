import SluiceTLS

/// The stored form of a password: enough to check one, and slow to guess from.
///
/// Written `$scrypt$ln=15,r=8,p=1$SALT$HASH`, with salt and hash in base 64 without padding: the form of the password hashing competition.
public struct PasswordHash: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public let cost: Scrypt.Cost
  let salt: [UInt8]
  let hash: [UInt8]

  /// Hashes a password with a new salt. Takes a tenth of a second at the standard cost.
  ///
  /// Passwords are bytes: what looks the same but was typed as other characters of Unicode is another one.
  ///
  /// - Returns: nil if there is no memory for it, or the cost is too high.
  public init?(of password: String, cost: Scrypt.Cost = .standard) {
    let salt = secureRandomBytes(16)
    guard let hash = Scrypt.derive(password: password.utf8, salt: salt, cost: cost, count: 32) else {
      return nil
    }
    self.init(cost: cost, salt: salt, hash: hash)
  }

  private init(cost: Scrypt.Cost, salt: [UInt8], hash: [UInt8]) {
    self.cost = cost
    self.salt = salt
    self.hash = hash
  }

  /// A hash that no password has, at some cost.
  static func decoy(cost: Scrypt.Cost) -> PasswordHash {
    PasswordHash(cost: cost, salt: secureRandomBytes(16), hash: secureRandomBytes(32))
  }

  /// Whether this is the password. Takes as long for a wrong one.
  func matches(_ password: String) -> Bool {
    guard let other = Scrypt.derive(password: password.utf8, salt: salt, cost: cost, count: hash.count) else {
      return false
    }
    return isEqualInConstantTime(hash, other)
  }

  /// Whether the cost is less than what passwords need today.
  public var isWeak: Bool { cost.work < 1 << 17 }

  /// Changes when the password is set, and doesn't help to guess it.
  var fingerprint: [UInt8] { salt }

  // MARK: As text

  /// As it stands in a file.
  public var text: String {
    "$scrypt$ln=\(cost.logN),r=\(cost.r),p=\(cost.p)$\(Base64Text.standard.encode(salt))$\(Base64Text.standard.encode(hash))"
  }

  /// - Throws: ``AccessTextError`` with what is wrong.
  public init(_ text: some StringProtocol) throws(AccessTextError) {
    let parts = text.utf8.split(separator: UInt8(ascii: "$"), maxSplits: 5, omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0].isEmpty, parts[1].elementsEqual("scrypt".utf8) else {
      throw AccessTextError(
        "this isn't a hash of a password, $scrypt$ln=15,r=8,p=1$SALT$HASH; have sluice user passwd write it")
    }
    guard let cost = Self.cost(parts[2]) else {
      throw AccessTextError("the hash's parameters aren't like ln=15,r=8,p=1")
    }
    guard cost.isBearable else {
      throw AccessTextError(
        "the hash's parameters ln=\(cost.logN),r=\(cost.r),p=\(cost.p) ask for too much memory or time; "
          + "ln=15,r=8,p=1 is usual")
    }
    guard let salt = Base64Text.standard.decode(parts[3]), (8...64).contains(salt.count) else {
      throw AccessTextError("the hash's salt isn't 8 to 64 bytes in base 64 without padding")
    }
    guard let hash = Base64Text.standard.decode(parts[4]), (16...64).contains(hash.count) else {
      throw AccessTextError("the hash itself isn't 16 to 64 bytes in base 64 without padding")
    }
    self.init(cost: cost, salt: salt, hash: hash)
  }

  private static func cost(_ text: some Collection<UInt8>) -> Scrypt.Cost? {
    let parts = text.split(separator: UInt8(ascii: ","), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, let logN = number(parts[0], "ln="), let r = number(parts[1], "r="),
      let p = number(parts[2], "p=")
    else { return nil }
    return Scrypt.Cost(logN: logN, r: r, p: p)
  }

  private static func number(_ text: some Collection<UInt8>, _ name: String) -> Int? {
    let digits = text.dropFirst(name.utf8.count)
    guard text.starts(with: name.utf8), (1...6).contains(digits.count) else { return nil }
    var number = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      number = number * 10 + Int(digit - UInt8(ascii: "0"))
    }
    return number
  }

  public var description: String { "a password's hash" }
  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
