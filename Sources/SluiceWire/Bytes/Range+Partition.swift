extension Range<Int> {
  /// The first number for which `isReached` holds; it must hold from there on. The upper bound when it holds for none.
  @inlinable @inline(__always)
  package func partition(where isReached: (Int) -> Bool) -> Int {
    var low = lowerBound
    var high = upperBound
    while low < high {
      let middle = (low &+ high) >> 1
      if isReached(middle) { high = middle } else { low = middle &+ 1 }
    }
    return low
  }
}
