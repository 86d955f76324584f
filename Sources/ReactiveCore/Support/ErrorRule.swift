/// Which errors an operator meets, and what becomes of them.
///
/// The plain and the `try` form of an operator are the same but for this: its stage or reduction takes the rule as a parameter.
/// The closure is kept as one that throws in both forms, since a closure that doesn't throw is one already: with
/// `throws(Thrown)` it would first have to be wrapped in another, which costs two nanoseconds a value.
@usableFromInline
protocol ErrorRule<Upstream, Downstream> {
  /// The error that upstream may fail with.
  associatedtype Upstream: Error
  /// The error that downstream may get.
  associatedtype Downstream: Error

  /// The error that downstream gets for one from upstream.
  static func convert(_ failure: Upstream) -> Downstream

  /// The error that downstream gets for one from the closure.
  static func convert(thrown error: any Error) -> Downstream
}

/// The plain form: the closure does not throw, upstream's error passes as it is.
@usableFromInline
enum Passing<Failure: Error>: ErrorRule {
  @inlinable
  static func convert(_ failure: Failure) -> Failure { failure }

  @inlinable
  static func convert(thrown error: any Error) -> Failure {
    violation("An operator that cannot throw has thrown")
  }
}

/// The `try` form: the closure may throw, downstream gets any error.
@usableFromInline
enum Trying<UpstreamFailure: Error>: ErrorRule {
  @inlinable
  static func convert(_ failure: UpstreamFailure) -> any Error { failure }

  @inlinable
  static func convert(thrown error: any Error) -> any Error { error }
}
