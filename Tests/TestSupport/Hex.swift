extension [UInt8] {
  /// Bytes from pairs of hexadecimal digits, optionally separated by white space.
  ///
  /// - Precondition: `hex` contains only digits and white space, and an even number of digits.
  public init(hex: String) {
    let digits = hex.filter { !$0.isWhitespace }.map { digit -> UInt8 in
      guard let value = digit.hexDigitValue else { fatalError("\(digit) isn't a hexadecimal digit") }
      return UInt8(value)
    }
    precondition(digits.count.isMultiple(of: 2), "a hexadecimal digit is missing in \(hex)")
    self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  /// The bytes as two digits each, in groups of four bytes.
  public var hex: String {
    enumerated().reduce(into: "") { text, byte in
      if byte.offset > 0, byte.offset.isMultiple(of: 4) { text += " " }
      text += (byte.element < 16 ? "0" : "") + String(byte.element, radix: 16)
    }
  }
}
