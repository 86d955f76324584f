/// Hexadecimal digits from a client.
package enum HexDigits {
  /// Returns the number; nil without digits, with any other character, or if it exceeds an `Int`. A sign isn't allowed, although Swift would accept one.
  package static func number(_ digits: some Collection<UInt8>) -> Int? {
    guard digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-") else { return nil }
    return Int(String(decoding: digits, as: UTF8.self), radix: 16)
  }
}
