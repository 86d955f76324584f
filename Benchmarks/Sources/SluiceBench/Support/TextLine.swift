import Glibc

/// Lines that end in CR LF, found in place.
enum TextLine {
  /// The length of the line at `position` with its CR LF; nil when its end has not arrived.
  @inline(__always)
  static func length(_ bytes: UnsafeRawBufferPointer, at position: Int) -> Int? {
    let start = bytes.baseAddress! + position
    guard let end = memchr(start, 10, bytes.count - position) else { return nil }
    return UnsafeRawPointer(end) - start + 1
  }

  /// The line as text, for messages.
  static func text(_ bytes: UnsafeRawBufferPointer, at position: Int, length: Int) -> String {
    String(decoding: bytes[position..<(position + length)].filter { $0 >= 32 }, as: UTF8.self)
  }
}
