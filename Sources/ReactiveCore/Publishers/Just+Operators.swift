// Combine's operators on one value do their work when they are called, and return a publisher of the result.
extension Just {
  /// Delivers the result of a function of the value.
  @inlinable
  public func map<T>(_ transform: (Output) -> T) -> Just<T> { Just<T>(transform(output)) }

  /// Delivers the result of a function of the value, or fails if it throws.
  @inlinable
  public func tryMap<T>(_ transform: (Output) throws -> T) -> Result<T, any Error>.Publisher {
    Result.Publisher(Result { try transform(output) })
  }

  /// Delivers the result of a function of the value, unless that is nil.
  @inlinable
  public func compactMap<T>(_ transform: (Output) -> T?) -> Optional<T>.Publisher {
    Optional.Publisher(transform(output))
  }

  /// Delivers the value if a function says so.
  @inlinable
  public func filter(_ isIncluded: (Output) -> Bool) -> Optional<Output>.Publisher {
    keep(if: isIncluded(output))
  }

  /// Delivers the result of a function of an initial result and the value.
  @inlinable
  public func reduce<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) -> T
  ) -> Result<T, Never>.Publisher {
    Result.Publisher(.success(nextPartialResult(initialResult, output)))
  }

  /// Delivers the result of a function of an initial result and the value, or fails if it throws.
  @inlinable
  public func tryReduce<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) throws -> T
  ) -> Result<T, any Error>.Publisher {
    Result.Publisher(Result { try nextPartialResult(initialResult, output) })
  }

  /// Delivers the result of a function of an initial result and the value.
  @inlinable
  public func scan<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) -> T
  ) -> Result<T, Never>.Publisher {
    reduce(initialResult, nextPartialResult)
  }

  /// Delivers the result of a function of an initial result and the value, or fails if it throws.
  @inlinable
  public func tryScan<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) throws -> T
  ) -> Result<T, any Error>.Publisher {
    tryReduce(initialResult, nextPartialResult)
  }

  /// Delivers the value in an array.
  @inlinable
  public func collect() -> Just<[Output]> { Just<[Output]>([output]) }

  /// Delivers 1.
  @inlinable
  public func count() -> Just<Int> { Just<Int>(1) }

  /// Delivers nothing.
  @inlinable
  public func ignoreOutput() -> Empty<Output, Never> { Empty() }
}

// Questions.
extension Just {
  /// Delivers whether the value satisfies a function.
  @inlinable
  public func allSatisfy(_ predicate: (Output) -> Bool) -> Just<Bool> { Just<Bool>(predicate(output)) }

  /// Delivers whether the value satisfies a function, or fails if it throws.
  @inlinable
  public func tryAllSatisfy(_ predicate: (Output) throws -> Bool) -> Result<Bool, any Error>.Publisher {
    tryMap(predicate)
  }

  /// Delivers whether the value satisfies a function.
  @inlinable
  public func contains(where predicate: (Output) -> Bool) -> Just<Bool> { Just<Bool>(predicate(output)) }

  /// Delivers whether the value satisfies a function, or fails if it throws.
  @inlinable
  public func tryContains(where predicate: (Output) throws -> Bool) -> Result<Bool, any Error>.Publisher {
    tryMap(predicate)
  }

  /// This publisher: one value is the least.
  @inlinable
  public func min(by areInIncreasingOrder: (Output, Output) -> Bool) -> Just<Output> { self }

  /// This publisher: one value is the greatest.
  @inlinable
  public func max(by areInIncreasingOrder: (Output, Output) -> Bool) -> Just<Output> { self }

  /// This publisher: one value has no duplicate.
  @inlinable
  public func removeDuplicates(by predicate: (Output, Output) -> Bool) -> Just<Output> { self }

  /// Delivers the value, or fails if the function, called with the value twice, throws.
  @inlinable
  public func tryRemoveDuplicates(
    by predicate: (Output, Output) throws -> Bool
  ) -> Result<Output, any Error>.Publisher {
    tryMap { output in
      _ = try predicate(output, output)
      return output
    }
  }
}

// Positions.
extension Just {
  /// This publisher.
  @inlinable
  public func first() -> Just<Output> { self }

  /// Delivers the value if it satisfies a function.
  @inlinable
  public func first(where predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    keep(if: predicate(output))
  }

  /// This publisher.
  @inlinable
  public func last() -> Just<Output> { self }

  /// Delivers the value if it satisfies a function.
  @inlinable
  public func last(where predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    keep(if: predicate(output))
  }

  /// Delivers the value if none is dropped.
  @inlinable
  public func dropFirst(_ count: Int = 1) -> Optional<Output>.Publisher {
    precondition(count >= 0, "count must not be negative")
    return keep(if: count == 0)
  }

  /// Delivers the value unless it satisfies a function.
  @inlinable
  public func drop(while predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    keep(if: !predicate(output))
  }

  /// Delivers the value if any may pass.
  @inlinable
  public func prefix(_ maxLength: Int) -> Optional<Output>.Publisher {
    precondition(maxLength >= 0, "maxLength must not be negative")
    return keep(if: maxLength > 0)
  }

  /// Delivers the value if it satisfies a function.
  @inlinable
  public func prefix(while predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    keep(if: predicate(output))
  }

  /// Delivers the value for position 0.
  @inlinable
  public func output(at index: Int) -> Optional<Output>.Publisher {
    precondition(index >= 0, "index must not be negative")
    return keep(if: index == 0)
  }

  /// Delivers the value for a range that begins with 0, even an empty one.
  @inlinable
  public func output<R: RangeExpression>(in range: R) -> Optional<Output>.Publisher where R.Bound == Int {
    keep(if: range.relative(to: 0..<Int.max).lowerBound == 0)
  }

  @inlinable
  func keep(if condition: Bool) -> Optional<Output>.Publisher { Optional.Publisher(condition ? output : nil) }
}

// Errors, and values before and after.
extension Just {
  /// Delivers the value as one that might have been an error.
  @inlinable
  public func setFailureType<E: Error>(to failureType: E.Type) -> Result<Output, E>.Publisher {
    Result.Publisher(.success(output))
  }

  /// Delivers the value as one that might have been an error.
  @inlinable
  public func mapError<E: Error>(_ transform: (Never) -> E) -> Result<Output, E>.Publisher {
    Result.Publisher(.success(output))
  }

  /// This publisher, which cannot fail.
  @inlinable
  public func replaceError(with output: Output) -> Just<Output> { self }

  /// This publisher, which is not empty.
  @inlinable
  public func replaceEmpty(with output: Output) -> Just<Output> { self }

  /// This publisher, which cannot fail.
  @inlinable
  public func retry(_ times: Int) -> Just<Output> { self }

  /// Delivers values before this one.
  @inlinable
  public func prepend(_ elements: Output...) -> Publishers.Sequence<[Output], Never> { prepend(elements) }

  /// Delivers values before this one.
  @inlinable
  public func prepend<S: Sequence>(_ elements: S) -> Publishers.Sequence<[Output], Never>
  where S.Element == Output {
    Publishers.Sequence(sequence: elements + [output])
  }

  /// Delivers values after this one.
  @inlinable
  public func append(_ elements: Output...) -> Publishers.Sequence<[Output], Never> { append(elements) }

  /// Delivers values after this one.
  @inlinable
  public func append<S: Sequence>(_ elements: S) -> Publishers.Sequence<[Output], Never>
  where S.Element == Output {
    Publishers.Sequence(sequence: [output] + elements)
  }
}

extension Just where Output: Equatable {
  /// Delivers whether the value equals another.
  @inlinable
  public func contains(_ output: Output) -> Just<Bool> { Just<Bool>(self.output == output) }

  /// This publisher: one value has no duplicate.
  @inlinable
  public func removeDuplicates() -> Just<Output> { self }
}

extension Just where Output: Comparable {
  /// This publisher: one value is the least.
  @inlinable
  public func min() -> Just<Output> { self }

  /// This publisher: one value is the greatest.
  @inlinable
  public func max() -> Just<Output> { self }
}
