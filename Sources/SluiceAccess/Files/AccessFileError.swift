/// What is wrong with a file that says who may do what: which one, where in it, what, and what to do.
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
