/// A failed check of a helper, as a sentence.
public struct TestFailure: Error, CustomStringConvertible {
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// - Throws: ``TestFailure`` unless `condition` is true.
public func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
  if !condition { throw TestFailure(what()) }
}
