/// What is wrong with a part of a file, in words.
public struct AccessTextError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String

  init(_ description: String) {
    self.description = description
  }
}
