// Operators that need a collection, by what the collection can do.
extension Publishers.Sequence where Elements: Collection {
  /// Delivers the number of elements.
  @inlinable
  public func count() -> Result<Int, Failure>.Publisher {
    Result.Publisher(.success(sequence.count))
  }

  /// Delivers the elements in a range of positions, counted in indices of the collection.
  @inlinable
  public func output(in range: Range<Elements.Index>) -> Publishers.Sequence<[Output], Failure> {
    Publishers.Sequence<[Output], Failure>(sequence: Array(sequence[range]))
  }
}

extension Publishers.Sequence where Elements: Collection, Failure == Never {
  /// Delivers the first element.
  @inlinable
  public func first() -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.first)
  }

  /// Delivers the number of elements.
  @inlinable
  public func count() -> Just<Int> {
    Just(sequence.count)
  }

  /// Delivers the element at an index of the collection, if there is one.
  @inlinable
  public func output(at index: Elements.Index) -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.indices.contains(index) ? sequence[index] : nil)
  }
}

extension Publishers.Sequence where Elements: BidirectionalCollection, Failure == Never {
  /// Delivers the last element.
  @inlinable
  public func last() -> Optional<Output>.Publisher {
    Optional.Publisher(sequence.last)
  }

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
