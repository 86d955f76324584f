/// A file with a password or a token in it.
public enum SecretFile {
  /// The longest secret that HELLO can have, in bytes.
  private static let longest = 8_192

  /// - Throws: ``UsageError`` if the file can't be read, or its first line is empty, too long or not text.
  public static func firstLine(of path: String) throws(UsageError) -> String {
    let lineBreak = UInt8(ascii: "\n")
    let bytes: [UInt8]
    do {
      bytes = try FileBytes.read(path, limit: longest + 2, until: lineBreak)
    } catch {
      throw UsageError("\(path) can't be read: \(error.reason)")
    }
    var line = bytes.prefix { $0 != lineBreak }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard !line.isEmpty else { throw UsageError("the first line of \(path) is empty") }
    guard line.count <= longest, let text = String(validating: line, as: UTF8.self) else {
      throw UsageError("the first line of \(path) is too long, or isn't text")
    }
    return text
  }
}
