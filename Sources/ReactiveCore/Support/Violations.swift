// Messages for programs that break the protocol between publisher and subscriber.

extension Subscribers.Demand {
  /// Stops the program when nothing is asked for.
  @inlinable
  package func assertNonZero(file: StaticString = #file, line: UInt = #line) {
    if self == .none {
      fatalError("API Violation: demand must not be zero", file: file, line: line)
    }
  }
}

@usableFromInline
@inline(never)
func violation(_ happening: StaticString) -> Never {
  fatalError("Invalid state: \(happening)")
}
