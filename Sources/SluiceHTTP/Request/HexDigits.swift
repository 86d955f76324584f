/// Hexadecimal digits that a client has sent.
package enum HexDigits {
  /// Their number; nil where there are none, or anything else, or more than an `Int` can have. A sign, which Swift takes for a part of a number, is something else.
  package static func number(_ digits: some Collection<UInt8>) -> Int? {
    guard digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-") else { return nil }
    return Int(String(decoding: digits, as: UTF8.self), radix: 16)
  }
}
