/// Delivers whether the answer to a predicate was once, or was never, a certain one.
@usableFromInline
struct QuestionReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline let decisive: Bool
  @usableFromInline var result: Bool?
  @usableFromInline let predicate: (Input) throws -> Bool

  /// - Parameter decisive: The answer that decides, and is the result then. Without it the result is the other one.
  @inlinable
  init(decidedBy decisive: Bool, _ predicate: @escaping (Input) throws -> Bool) {
    self.decisive = decisive
    self.predicate = predicate
    result = !decisive
  }

  @inlinable
  mutating func receive(_ input: Input) throws -> ReductionStep {
    guard try predicate(input) == decisive else { return .more }
    result = decisive
    return .done
  }
}
