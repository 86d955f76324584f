/// Reads a fuzzer's input from front to back. After its end it returns zeros, so every input is valid.
public struct ProbeInput {
  public private(set) var rest: ArraySlice<UInt8>

  public init(_ bytes: [UInt8]) {
    rest = bytes[...]
  }

  public var isEmpty: Bool { rest.isEmpty }

  public mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  /// Little-endian.
  public mutating func integer<I: FixedWidthInteger & UnsignedInteger>(_ type: I.Type = I.self) -> I {
    (0..<I.bitWidth / 8).reduce(0) { $0 | I(byte()) << I($1 * 8) }
  }

  /// A number, often near the limits: the byte is a special value, a small number, or 255, after which eight bytes follow.
  public mutating func number() -> UInt64 {
    switch byte() {
    case let small where small < 0xE0: UInt64(small)
    case 0xE0: UInt64(UInt32.max)
    case 0xE1: UInt64(UInt32.max) + 1
    case 0xE2: UInt64(Int64.max)
    case 0xE3: UInt64(Int64.max) + 1
    case 0xE4: 1 << 62
    case 0xFF: integer()
    case let large: .max - UInt64(0xFE - large)
    }
  }

  /// Like ``number()``, reduced to 32 bits.
  public mutating func shortNumber() -> UInt32 {
    let number = number()
    return number > UInt64(UInt32.max)
      ? UInt32.max - UInt32(truncatingIfNeeded: .max - number) : UInt32(number)
  }

  /// The next `count` bytes, or fewer at the end.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    let bytes = Array(rest.prefix(count))
    rest = rest.dropFirst(count)
    return bytes
  }

  /// A byte for the length, then that many bytes.
  public mutating func text() -> String { String(decoding: bytes(Int(byte())), as: UTF8.self) }

  /// The remaining bytes.
  public mutating func remaining() -> [UInt8] { bytes(rest.count) }

  public mutating func element<T>(of choices: [T]) -> T { choices[Int(byte()) % choices.count] }

  public mutating func bool() -> Bool { byte() & 1 != 0 }
}
