import Glibc

/// The lines of a file that people edit.
struct TextLines {
  struct Line {
    /// From 1.
    var number: Int
    /// Without white space at its ends.
    var text: Substring
  }

  /// All that isn't empty or a comment, which begins with `#`.
  ///
  /// - Parameter path: the file's, for the error that names a line that isn't UTF-8.
  static func meaningful(of bytes: [UInt8], _ path: String) throws(AccessFileError) -> [Line] {
    var lines: [Line] = []
    for (index, text) in try all(of: bytes, path).enumerated() {
      let trimmed = trim(text)
      if !trimmed.isEmpty, trimmed.utf8.first != UInt8(ascii: "#") {
        lines.append(Line(number: index + 1, text: trimmed))
      }
    }
    return lines
  }

  /// Every line, without the line break.
  static func all(of bytes: [UInt8], _ path: String) throws(AccessFileError) -> [Substring] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    // Some editors begin a text with this, and it can't be seen.
    let content = bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes[...]
    var lines: [Substring] = []
    for line in content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      guard let text = String(validating: line, as: UTF8.self) else {
        throw AccessFileError(path, line: lines.count + 1, "this isn't UTF-8; save the file as that")
      }
      lines.append(text[...])
    }
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines
  }

  /// Without spaces, tabs, and the rest of a line break of two characters.
  static func trim(_ text: Substring) -> Substring {
    let blank: [UInt8] = [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r")]
    guard let first = text.utf8.firstIndex(where: { !blank.contains($0) }),
      let last = text.utf8.lastIndex(where: { !blank.contains($0) })
    else { return "" }
    return Substring(text.utf8[first...last])
  }
}

/// The mistake in a part of a file, in words.
public struct AccessTextError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String

  init(_ description: String) {
    self.description = description
  }
}

/// An error in a file with access rules: which file, where in it, what is wrong, and what to do.
public struct AccessFileError: Error, Hashable, Sendable, CustomStringConvertible {
  public var path: String
  /// From 1; nil for what is about the file as a whole.
  public var line: Int?
  public var message: String

  public init(_ path: String, line: Int? = nil, _ message: String) {
    self.path = path
    self.line = line
    self.message = message
  }

  /// - Parameter action: "cannot be read"; the system's reason follows.
  init(_ path: String, failing action: String, code: Int32 = errno) {
    self.init(path, unsafe "\(action): \(String(cString: strerror(code)))")
  }

  public var description: String {
    line.map { "\(path), line \($0): \(message)" } ?? "\(path): \(message)"
  }
}
