/// Base 64 of RFC 4648 without padding, in its two alphabets; strict, so that each value has one text.
package struct Base64Text: Sendable {
  /// As hashes of passwords are written.
  package static let standard = Base64Text("+/")
  /// As tokens are written.
  package static let url = Base64Text("-_")

  private let letters: [UInt8]
  /// The value of each letter; 255 for what isn't one.
  private let values: [UInt8]

  private init(_ last: String) {
    letters = Array(("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last).utf8)
    var values = [UInt8](repeating: 255, count: 256)
    for (value, letter) in letters.enumerated() { values[Int(letter)] = UInt8(value) }
    self.values = values
  }

  package func encode(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var group: UInt32 = 0
    var bits: UInt32 = 0
    for byte in bytes {
      group = group << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(letters[Int(group >> bits & 63)])
      }
    }
    if bits > 0 { text.append(letters[Int(group << (6 - bits) & 63)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil for padding, other characters, a length that no value has, and bits behind the last byte.
  package func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3 + 2)
    var group: UInt32 = 0
    var bits: UInt32 = 0
    for letter in text {
      let value = values[Int(letter)]
      guard value < 64 else { return nil }
      group = (group << 6 | UInt32(value)) & 0xFFFF
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: group >> bits))
      }
    }
    return group & (1 << bits - 1) == 0 ? bytes : nil
  }
}
