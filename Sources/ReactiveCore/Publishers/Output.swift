extension Publishers {
  /// Passes on the values at certain positions.
  public struct Output<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The positions passed on, counted from 0.
    public let range: CountableRange<Int>

    /// Picks values of a publisher by position.
    ///
    /// - Parameters:
    ///   - upstream: The upstream publisher.
    ///   - range: The positions passed on, counted from 0; not negative.
    @inlinable
    public init(upstream: Upstream, range: CountableRange<Int>) {
      precondition(range.lowerBound >= 0, "lowerBound must not be negative")
      precondition(range.upperBound >= 0, "upperBound must not be negative")
      self.upstream = upstream
      self.range = range
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("Output", OutputStage<Output, Passing<Failure>>(range), to: subscriber)
    }
  }
}

extension Publishers.Output: Equatable where Upstream: Equatable {}
extension Publishers.Output: Sendable where Upstream: Sendable {}

@usableFromInline
struct OutputStage<Input, Errors: ErrorRule>: Stage {
  @usableFromInline var toSkip: Int
  @usableFromInline var toPass: Int

  @inlinable static var isReflecting: Bool { false }
  @inlinable static var acceptsNone: Bool { true }

  @inlinable
  init(_ range: CountableRange<Int>) {
    toSkip = range.lowerBound
    toPass = range.count
  }

  @inlinable
  mutating func receive(_ input: Input) -> Verdict<Input> {
    if toSkip > 0 {
      toSkip -= 1
      return .drop
    }
    guard toPass > 0 else { return .finish }
    toPass -= 1
    return toPass == 0 ? .last(input) : .pass(input)
  }
}

extension Publisher {
  /// Passes on the first values, then cancels upstream and finishes.
  ///
  /// - Parameter maxLength: How many; not negative. With 0, it finishes when upstream delivers its first value.
  @inlinable
  public func prefix(_ maxLength: Int) -> Publishers.Output<Self> { output(in: ..<maxLength) }

  /// Passes on the value at one position, then cancels upstream and finishes.
  ///
  /// - Parameter index: The position, counted from 0; not negative.
  @inlinable
  public func output(at index: Int) -> Publishers.Output<Self> { output(in: index...index) }

  /// Passes on the values at certain positions, then cancels upstream and finishes.
  ///
  /// - Parameter range: The positions, counted from 0; not negative.
  @inlinable
  public func output<R: RangeExpression>(in range: R) -> Publishers.Output<Self> where R.Bound == Int {
    Publishers.Output(upstream: self, range: range.relative(to: 0..<Int.max))
  }
}
