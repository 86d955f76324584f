/// Gives out stream numbers: small, and none twice at a time.
///
/// A number that was given back is used before a new one, so that the highest is never more than the most that were in
/// use at once.
struct StreamNumbers {
  /// The highest number that the broker takes.
  var limit: UInt32 = 0
  private var highest: UInt32 = 0
  private var returned: [UInt32] = []

  /// A number that isn't in use; nil when all are.
  mutating func take() -> UInt32? {
    if let number = returned.popLast() { return number }
    guard highest < limit else { return nil }
    highest += 1
    return highest
  }

  /// The number's stream is over on both sides.
  mutating func giveBack(_ number: UInt32) {
    assert(number > 0 && number <= highest && !returned.contains(number), "a number is given back once")
    returned.append(number)
  }
}
