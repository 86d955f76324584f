/// Something under way that can be stopped.
public protocol Cancellable {
  /// Stops it and releases what it held. Further calls have no effect.
  func cancel()
}

extension Cancellable {
  /// Keeps this in a collection, to be cancelled when the collection lets go of it.
  public func store<C: RangeReplaceableCollection>(in collection: inout C)
  where C.Element == AnyCancellable {
    AnyCancellable(self).store(in: &collection)
  }

  /// Keeps this in a set, to be cancelled when the set lets go of it.
  public func store(in set: inout Set<AnyCancellable>) {
    AnyCancellable(self).store(in: &set)
  }
}
