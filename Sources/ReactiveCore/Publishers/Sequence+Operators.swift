// Combine's operators on a sequence do their work when they are called, and return a publisher of the result.
// They iterate the sequence then, so it must have an end.
extension Publishers.Sequence {
  /// Delivers the result of a function of each element.
  @inlinable
  public func map<T>(_ transform: (Output) -> T) -> Publishers.Sequence<[T], Failure> {
    Publishers.Sequence<[T], Failure>(sequence: sequence.map(transform))
  }

  /// Delivers the result of a function of each element, unless that is nil.
  @inlinable
  public func compactMap<T>(_ transform: (Output) -> T?) -> Publishers.Sequence<[T], Failure> {
    Publishers.Sequence<[T], Failure>(sequence: sequence.compactMap(transform))
  }

  /// Delivers the elements that a function picks.
  @inlinable
  public func filter(_ isIncluded: (Output) -> Bool) -> Publishers.Sequence<[Output], Failure> {
    Publishers.Sequence<[Output], Failure>(sequence: sequence.filter(isIncluded))
  }

  /// Delivers the running result of a function over the elements so far.
  @inlinable
  public func scan<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) -> T
  ) -> Publishers.Sequence<[T], Failure> {
    var result = initialResult
    return map { element in
      result = nextPartialResult(result, element)
      return result
    }
  }

  /// Delivers the elements with a value in place of each nil.
  @inlinable
  public func replaceNil<T>(with output: T) -> Publishers.Sequence<[Output], Failure> where Output == T? {
    map { $0 ?? output }
  }

  /// Delivers nothing.
  @inlinable
  public func ignoreOutput() -> Empty<Output, Failure> { Empty() }

  /// Delivers the elements as if there might be an error.
  @inlinable
  public func setFailureType<E: Error>(to error: E.Type) -> Publishers.Sequence<Elements, E> {
    Publishers.Sequence<Elements, E>(sequence: sequence)
  }
}

// Questions about all elements.
extension Publishers.Sequence {
  /// Delivers all elements in an array.
  @inlinable
  public func collect() -> Result<[Output], Failure>.Publisher { Result.Publisher(.success(Array(sequence))) }

  /// Delivers the result of a function over all elements.
  @inlinable
  public func reduce<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) -> T
  ) -> Result<T, Failure>.Publisher {
    Result.Publisher(.success(sequence.reduce(initialResult, nextPartialResult)))
  }

  /// Delivers the result of a function over all elements, or fails if it throws.
  @inlinable
  public func tryReduce<T>(
    _ initialResult: T, _ nextPartialResult: (T, Output) throws -> T
  ) -> Result<T, any Error>.Publisher {
    Result.Publisher(Result { try sequence.reduce(initialResult, nextPartialResult) })
  }

  /// Delivers whether all elements satisfy a function.
  @inlinable
  public func allSatisfy(_ predicate: (Output) -> Bool) -> Result<Bool, Failure>.Publisher {
    Result.Publisher(.success(sequence.allSatisfy(predicate)))
  }

  /// Delivers whether all elements satisfy a function, or fails if it throws.
  @inlinable
  public func tryAllSatisfy(_ predicate: (Output) throws -> Bool) -> Result<Bool, any Error>.Publisher {
    Result.Publisher(Result { try sequence.allSatisfy(predicate) })
  }

  /// Delivers whether any element satisfies a function.
  @inlinable
  public func contains(where predicate: (Output) -> Bool) -> Result<Bool, Failure>.Publisher {
    Result.Publisher(.success(sequence.contains(where: predicate)))
  }

  /// Delivers whether any element satisfies a function, or fails if it throws.
  @inlinable
  public func tryContains(where predicate: (Output) throws -> Bool) -> Result<Bool, any Error>.Publisher {
    Result.Publisher(Result { try sequence.contains(where: predicate) })
  }
}

// Positions.
extension Publishers.Sequence {
  /// Delivers the elements but the first.
  @inlinable
  public func dropFirst(_ count: Int = 1) -> Publishers.Sequence<DropFirstSequence<Elements>, Failure> {
    Publishers.Sequence<DropFirstSequence<Elements>, Failure>(sequence: sequence.dropFirst(count))
  }

  /// Delivers the elements from the first that does not satisfy a function.
  @inlinable
  public func drop(
    while predicate: (Output) -> Bool
  ) -> Publishers.Sequence<DropWhileSequence<Elements>, Failure> {
    Publishers.Sequence<DropWhileSequence<Elements>, Failure>(sequence: sequence.drop(while: predicate))
  }

  /// Delivers the first elements.
  @inlinable
  public func prefix(_ maxLength: Int) -> Publishers.Sequence<PrefixSequence<Elements>, Failure> {
    Publishers.Sequence<PrefixSequence<Elements>, Failure>(sequence: sequence.prefix(maxLength))
  }

  /// Delivers the elements up to the first that does not satisfy a function.
  @inlinable
  public func prefix(while predicate: (Output) -> Bool) -> Publishers.Sequence<[Output], Failure> {
    Publishers.Sequence<[Output], Failure>(sequence: sequence.prefix(while: predicate))
  }
}

extension Publishers.Sequence where Elements.Element: Equatable {
  /// Delivers the elements that differ from the one before.
  @inlinable
  public func removeDuplicates() -> Publishers.Sequence<[Output], Failure> {
    var last: Output?
    return filter { element in
      defer { last = element }
      return element != last
    }
  }

  /// Delivers whether an element equals a value.
  @inlinable
  public func contains(_ output: Output) -> Result<Bool, Failure>.Publisher {
    Result.Publisher(.success(sequence.contains(output)))
  }
}

// These return an optional publisher, whose failure type must be Never.
extension Publishers.Sequence where Failure == Never {
  /// Delivers the least element; the first of those that are equal.
  @inlinable
  public func min(by areInIncreasingOrder: (Output, Output) -> Bool) -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.min(by: areInIncreasingOrder))
  }

  /// Delivers the greatest element; the first of those that are equal.
  @inlinable
  public func max(by areInIncreasingOrder: (Output, Output) -> Bool) -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.max(by: areInIncreasingOrder))
  }

  /// Delivers the first element that satisfies a function.
  @inlinable
  public func first(where predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.first(where: predicate))
  }
}

extension Publishers.Sequence where Elements.Element: Comparable, Failure == Never {
  /// Delivers the least element; the first of those that are equal.
  @inlinable
  public func min() -> Optional<Output>.Publisher { Optional.Publisher(sequence.min()) }

  /// Delivers the greatest element; the first of those that are equal.
  @inlinable
  public func max() -> Optional<Output>.Publisher { Optional.Publisher(sequence.max()) }
}

// Operators that need a collection, by what the collection can do.
extension Publishers.Sequence where Elements: Collection {
  /// Delivers the number of elements.
  @inlinable
  public func count() -> Result<Int, Failure>.Publisher { Result.Publisher(.success(sequence.count)) }

  /// Delivers the elements in a range of positions, counted in indices of the collection.
  @inlinable
  public func output(in range: Range<Elements.Index>) -> Publishers.Sequence<[Output], Failure> {
    Publishers.Sequence<[Output], Failure>(sequence: Array(sequence[range]))
  }
}

extension Publishers.Sequence where Elements: Collection, Failure == Never {
  /// Delivers the first element.
  @inlinable
  public func first() -> Optional<Output>.Publisher { Optional.Publisher(sequence.first) }

  /// Delivers the number of elements.
  @inlinable
  public func count() -> Just<Int> { Just(sequence.count) }

  /// Delivers the element at an index of the collection, if there is one.
  @inlinable
  public func output(at index: Elements.Index) -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.indices.contains(index) ? sequence[index] : nil)
  }
}

extension Publishers.Sequence where Elements: BidirectionalCollection, Failure == Never {
  /// Delivers the last element.
  @inlinable
  public func last() -> Optional<Output>.Publisher { Optional.Publisher(sequence.last) }

  /// Delivers the last element that satisfies a function.
  @inlinable
  public func last(where predicate: (Output) -> Bool) -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.last(where: predicate))
  }
}

extension Publishers.Sequence where Elements: RandomAccessCollection, Failure == Never {
  /// Delivers the element at an index of the collection, if there is one. O(1).
  @inlinable
  public func output(at index: Elements.Index) -> Optional<Output>.Publisher {
    let isInside = sequence.startIndex <= index && index < sequence.endIndex
    return Optional.Publisher(isInside ? sequence[index] : nil)
  }
}
