/// Keeps the value at one edge of a stream: the first, or the last.
@usableFromInline
struct EdgeReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var result: Input?
  @usableFromInline let step: ReductionStep

  /// - Parameter step: `.done` for the first value, `.more` for the last.
  @inlinable
  init(_ step: ReductionStep) {
    self.step = step
  }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    result = input
    return step
  }
}
