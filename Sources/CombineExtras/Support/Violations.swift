// Where the core is ours, it has this function already.
#if canImport(Combine)
  import Combine

  extension Subscribers.Demand {
    /// Stops the program when nothing is asked for.
    func assertNonZero(file: StaticString = #file, line: UInt = #line) {
      if self == .none {
        fatalError("API Violation: demand must not be zero", file: file, line: line)
      }
    }
  }
#endif
