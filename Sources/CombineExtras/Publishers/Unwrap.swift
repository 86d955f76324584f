import PortableCombine

extension Publisher {
  /// Passes on the values that are there, and asks for another in place of each that is nil.
  ///
  ///     [1, nil, 3].publisher.unwrap().sink { print($0) }  // 1, 3
  public func unwrap<Value>() -> Publishers.CompactMap<Self, Value> where Output == Value? {
    compactMap { $0 }
  }
}
