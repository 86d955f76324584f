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

  public var description: String {
    line.map { "\(path), line \($0): \(message)" } ?? "\(path): \(message)"
  }
}
