// Combine's operators on a value or an error do their work when they are called, and return a publisher of
// the result.
extension Result.Publisher {
  /// Delivers the result of a function of the value.
  @inlinable
  public func map<T>(_ transform: (Output) -> T) -> Result<T, Failure>.Publisher {
    Result<T, Failure>.Publisher(result.map(transform))
  }

  /// Delivers the result of a function of the value, or fails if it throws.
  @inlinable
  public func tryMap<T>(_ transform: (Output) throws -> T) -> Result<T, any Error>.Publisher {
    Result<T, any Error>.Publisher(Result<T, any Error> { try transform(result.get()) })
  }

  /// Delivers the result of a function of an initial result and the value.
  @inlinable
  public func reduce<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) -> T
  ) -> Result<T, Failure>.Publisher {
    map { nextPartialResult(initialResult, $0) }
  }

  /// Delivers the result of a function of an initial result and the value, or fails if it throws.
  @inlinable
  public func tryReduce<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) throws -> T
  ) -> Result<T, any Error>.Publisher {
    tryMap { try nextPartialResult(initialResult, $0) }
  }

  /// Delivers the result of a function of an initial result and the value.
  @inlinable
  public func scan<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) -> T
  ) -> Result<T, Failure>.Publisher {
    map { nextPartialResult(initialResult, $0) }
  }

  /// Delivers the result of a function of an initial result and the value, or fails if it throws.
  @inlinable
  public func tryScan<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) throws -> T
  ) -> Result<T, any Error>.Publisher {
    tryMap { try nextPartialResult(initialResult, $0) }
  }

  /// Delivers the value in an array.
  @inlinable
  public func collect() -> Result<[Output], Failure>.Publisher {
    map { [$0] }
  }

  /// Delivers 1.
  @inlinable
  public func count() -> Result<Int, Failure>.Publisher {
    map { _ in 1 }
  }

  /// Delivers nothing and finishes, even in place of an error.
  @inlinable
  public func ignoreOutput() -> Empty<Output, Failure> { Empty() }
}

// Questions.
extension Result.Publisher {
  /// Delivers whether the value satisfies a function.
  @inlinable
  public func allSatisfy(_ predicate: (Output) -> Bool) -> Result<Bool, Failure>.Publisher { map(predicate) }

  /// Delivers whether the value satisfies a function, or fails if it throws.
  @inlinable
  public func tryAllSatisfy(_ predicate: (Output) throws -> Bool) -> Result<Bool, any Error>.Publisher {
    tryMap(predicate)
  }

  /// Delivers whether the value satisfies a function.
  @inlinable
  public func contains(where predicate: (Output) -> Bool) -> Result<Bool, Failure>.Publisher {
    map(predicate)
  }

  /// Delivers whether the value satisfies a function, or fails if it throws.
  @inlinable
  public func tryContains(where predicate: (Output) throws -> Bool) -> Result<Bool, any Error>.Publisher {
    tryMap(predicate)
  }

  /// This publisher: one value is the least.
  @inlinable
  public func min(by areInIncreasingOrder: (Output, Output) -> Bool) -> Result<Output, Failure>.Publisher {
    self
  }

  /// This publisher: one value is the greatest.
  @inlinable
  public func max(by areInIncreasingOrder: (Output, Output) -> Bool) -> Result<Output, Failure>.Publisher {
    self
  }

  /// Delivers the value, or fails if the function, called with the value twice, throws.
  @inlinable
  public func tryMin(
    by areInIncreasingOrder: (Output, Output) throws -> Bool
  ) -> Result<Output, any Error>.Publisher {
    tryCompare(areInIncreasingOrder)
  }

  /// Delivers the value, or fails if the function, called with the value twice, throws.
  @inlinable
  public func tryMax(
    by areInIncreasingOrder: (Output, Output) throws -> Bool
  ) -> Result<Output, any Error>.Publisher {
    tryCompare(areInIncreasingOrder)
  }

  /// This publisher: one value has no duplicate.
  @inlinable
  public func removeDuplicates(by predicate: (Output, Output) -> Bool) -> Result<Output, Failure>.Publisher {
    self
  }

  /// Delivers the value, or fails if the function, called with the value twice, throws.
  @inlinable
  public func tryRemoveDuplicates(
    by predicate: (Output, Output) throws -> Bool
  ) -> Result<Output, any Error>.Publisher {
    tryCompare(predicate)
  }

  @inlinable
  func tryCompare(_ compare: (Output, Output) throws -> Bool) -> Result<Output, any Error>.Publisher {
    tryMap { output in
      _ = try compare(output, output)
      return output
    }
  }
}

// Positions and errors.
extension Result.Publisher {
  /// This publisher.
  @inlinable
  public func first() -> Result<Output, Failure>.Publisher { self }

  /// This publisher.
  @inlinable
  public func last() -> Result<Output, Failure>.Publisher { self }

  /// Delivers the value, or fails with the result of a function of the error.
  @inlinable
  public func mapError<E: Error>(_ transform: (Failure) -> E) -> Result<Output, E>.Publisher {
    Result<Output, E>.Publisher(result.mapError(transform))
  }

  /// Delivers the value, or another in place of the error.
  @inlinable
  public func replaceError(with output: Output) -> Result<Output, Never>.Publisher {
    Result<Output, Never>.Publisher(result.flatMapError { _ in .success(output) })
  }

  /// This publisher, which is not empty.
  @inlinable
  public func replaceEmpty(with output: Output) -> Result<Output, Failure>.Publisher { self }

  /// This publisher, which would fail again.
  @inlinable
  public func retry(_ times: Int) -> Result<Output, Failure>.Publisher { self }
}

extension Result.Publisher where Failure == Never {
  /// Delivers the value as one that might have been an error.
  @inlinable
  public func setFailureType<E: Error>(to failureType: E.Type) -> Result<Output, E>.Publisher {
    Result<Output, E>.Publisher(.success(result.get()))
  }
}

extension Result.Publisher where Success: Equatable {
  /// Delivers whether the value equals another.
  @inlinable
  public func contains(_ output: Output) -> Result<Bool, Failure>.Publisher {
    map { $0 == output }
  }

  /// This publisher: one value has no duplicate.
  @inlinable
  public func removeDuplicates() -> Result<Output, Failure>.Publisher { self }
}

extension Result.Publisher where Success: Comparable {
  /// This publisher: one value is the least.
  @inlinable
  public func min() -> Result<Output, Failure>.Publisher { self }

  /// This publisher: one value is the greatest.
  @inlinable
  public func max() -> Result<Output, Failure>.Publisher { self }
}
