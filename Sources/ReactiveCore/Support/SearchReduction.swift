/// Looks for a value that satisfies a predicate.
@usableFromInline
struct SearchReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var result: Input?
  @usableFromInline let step: ReductionStep
  @usableFromInline let predicate: (Input) throws -> Bool

  /// - Parameter step: What follows a match: `.done` for the first, `.more` for the last.
  @inlinable
  init(_ step: ReductionStep, _ predicate: @escaping (Input) throws -> Bool) {
    self.step = step
    self.predicate = predicate
  }

  @inlinable
  mutating func receive(_ input: Input) throws -> ReductionStep {
    guard try predicate(input) else { return .more }
    result = input
    return step
  }
}
