extension Array {
  /// Removes all elements and keeps the memory. Of one element, which is what a list of a turn has where messages come one by one, that costs a tenth of
  /// `removeAll(keepingCapacity:)`, and of none nothing.
  @inlinable package mutating func removeAllInPlace() {
    switch count {
    case 0: break
    case 1: removeLast()
    default: removeAll(keepingCapacity: true)
    }
  }
}
