// Combine's operators on a value that may be missing do their work when they are called, and return a publisher of the
// result. Without a value there is no result, except an empty array of `collect()`. Combine behaves in the same way,
// although its operators on an empty publisher deliver 0, true, false or the initial result.
extension Optional.Publisher {
  /// Delivers the result of a function of the value.
  @inlinable
  public func map<T>(_ transform: (Output) -> T) -> Optional<T>.Publisher {
    Optional<T>.Publisher(output.map(transform))
  }

  /// Delivers the result of a function of the value, unless that is nil.
  @inlinable
  public func compactMap<T>(_ transform: (Output) -> T?) -> Optional<T>.Publisher {
    Optional<T>.Publisher(output.flatMap(transform))
  }

  /// Delivers the value if a function says so.
  @inlinable
  public func filter(_ isIncluded: (Output) -> Bool) -> Optional<Output>.Publisher {
    Optional<Output>.Publisher(output.flatMap { isIncluded($0) ? $0 : nil })
  }

  /// Delivers the result of a function of an initial result and the value; nothing without a value.
  @inlinable
  public func reduce<T>(_ initialResult: T, _ nextPartialResult: (T, Output) -> T) -> Optional<T>.Publisher {
    map { nextPartialResult(initialResult, $0) }
  }

  /// Delivers the result of a function of an initial result and the value.
  @inlinable
  public func scan<T>(_ initialResult: T, _ nextPartialResult: (T, Output) -> T) -> Optional<T>.Publisher {
    map { nextPartialResult(initialResult, $0) }
  }

  /// Delivers the value in an array; an empty array without a value.
  @inlinable
  public func collect() -> Optional<[Output]>.Publisher {
    Optional<[Output]>.Publisher(output.map { [$0] } ?? [])
  }

  /// Delivers 1; nothing without a value.
  @inlinable
  public func count() -> Optional<Int>.Publisher {
    map { _ in 1 }
  }

  /// Delivers nothing.
  @inlinable
  public func ignoreOutput() -> Empty<Output, Never> { Empty() }
}

// Questions.
extension Optional.Publisher {
  /// Delivers whether the value satisfies a function; nothing without a value.
  @inlinable
  public func allSatisfy(_ predicate: (Output) -> Bool) -> Optional<Bool>.Publisher { map(predicate) }

  /// Delivers whether the value satisfies a function; nothing without a value.
  @inlinable
  public func contains(where predicate: (Output) -> Bool) -> Optional<Bool>.Publisher { map(predicate) }

  /// This publisher: one value is the least.
  @inlinable
  public func min(by areInIncreasingOrder: (Output, Output) -> Bool) -> Optional<Output>.Publisher { self }

  /// This publisher: one value is the greatest.
  @inlinable
  public func max(by areInIncreasingOrder: (Output, Output) -> Bool) -> Optional<Output>.Publisher { self }

  /// This publisher: one value has no duplicate.
  @inlinable
  public func removeDuplicates(by predicate: (Output, Output) -> Bool) -> Optional<Output>.Publisher { self }
}

// Positions.
extension Optional.Publisher {
  /// This publisher.
  @inlinable
  public func first() -> Optional<Output>.Publisher { self }

  /// Delivers the value if it satisfies a function.
  @inlinable
  public func first(where predicate: (Output) -> Bool) -> Optional<Output>.Publisher { filter(predicate) }

  /// This publisher.
  @inlinable
  public func last() -> Optional<Output>.Publisher { self }

  /// Delivers the value if it satisfies a function.
  @inlinable
  public func last(where predicate: (Output) -> Bool) -> Optional<Output>.Publisher { filter(predicate) }

  /// Delivers the value if none is dropped.
  @inlinable
  public func dropFirst(_ count: Int = 1) -> Optional<Output>.Publisher {
    precondition(count >= 0, "count must not be negative")
    return filter { _ in count == 0 }
  }

  /// Delivers the value unless it satisfies a function.
  @inlinable
  public func drop(while predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    filter { !predicate($0) }
  }

  /// Delivers the value if any may pass.
  @inlinable
  public func prefix(_ maxLength: Int) -> Optional<Output>.Publisher {
    precondition(maxLength >= 0, "maxLength must not be negative")
    return filter { _ in maxLength > 0 }
  }

  /// Delivers the value if it satisfies a function.
  @inlinable
  public func prefix(while predicate: (Output) -> Bool) -> Optional<Output>.Publisher { filter(predicate) }

  /// Delivers the value for position 0.
  @inlinable
  public func output(at index: Int) -> Optional<Output>.Publisher {
    precondition(index >= 0, "index must not be negative")
    return filter { _ in index == 0 }
  }

  /// Delivers the value for a range that contains 0.
  @inlinable
  public func output<R: RangeExpression>(in range: R) -> Optional<Output>.Publisher where R.Bound == Int {
    let range = range.relative(to: 0..<Int.max)
    precondition(range.lowerBound >= 0, "lowerBound must not be negative")
    return filter { _ in range.contains(0) }
  }
}

// Errors and emptiness.
extension Optional.Publisher {
  /// This publisher, which cannot fail.
  @inlinable
  public func replaceError(with output: Output) -> Optional<Output>.Publisher { self }

  /// Delivers the value, or another if there is none.
  @inlinable
  public func replaceEmpty(with output: Output) -> Just<Output> { Just(self.output ?? output) }

  /// This publisher, which cannot fail.
  @inlinable
  public func retry(_ times: Int) -> Optional<Output>.Publisher { self }
}

extension Optional.Publisher where Wrapped: Equatable {
  /// Delivers whether the value equals another; nothing without a value.
  @inlinable
  public func contains(_ output: Output) -> Optional<Bool>.Publisher {
    map { $0 == output }
  }

  /// This publisher: one value has no duplicate.
  @inlinable
  public func removeDuplicates() -> Optional<Output>.Publisher { self }
}

extension Optional.Publisher where Wrapped: Comparable {
  /// This publisher: one value is the least.
  @inlinable
  public func min() -> Optional<Output>.Publisher { self }

  /// This publisher: one value is the greatest.
  @inlinable
  public func max() -> Optional<Output>.Publisher { self }
}
