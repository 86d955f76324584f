/// What a helper found wrong, in a sentence.
public struct TestFailure: Error, CustomStringConvertible {
  public var description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// - Throws: ``TestFailure`` when `condition` doesn't hold.
public func require(_ condition: Bool, _ what: @autoclosure () -> String) throws {
  if !condition { throw TestFailure(what()) }
}
