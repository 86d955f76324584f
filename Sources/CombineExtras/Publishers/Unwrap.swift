import PortableCombine

extension Publisher {
  /// Passes on values that aren't nil, and requests another value in place of each nil.
  ///
  ///     [1, nil, 3].publisher.unwrap().sink { print($0) }  // 1, 3
  public func unwrap<Value>() -> Publishers.CompactMap<Self, Value> where Output == Value? {
    compactMap { $0 }
  }
}
