/// Arguments that can't be used, and why: one line.
public struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, and what to do.
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// A text that isn't the value it should be.
public struct ValueError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, with the text in it: "'7x' isn't a number".
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}
