/// How records follow each other in a stream of bytes.
enum Framing: Equatable {
  /// Each ends with this byte, which isn't part of it; the last one may lack it.
  case delimited(UInt8)
  /// The whole input is one.
  case whole
  /// In front of each, its length as `u32`, little-endian.
  case lengthPrefixed
}
