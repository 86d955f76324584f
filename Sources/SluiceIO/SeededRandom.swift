/// Random numbers that are the same on every machine and in every version for the same seed: SplitMix64.
///
/// Its own methods, rather than the standard library's over a generator, because those may draw differently in
/// another release, and a seed that failed once must fail again.
public struct SeededRandom: Sendable {
  private var state: UInt64

  public init(seed: UInt64) {
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// A number from 0 to `bound` - 1; `bound` must not be 0.
  public mutating func next(below bound: UInt64) -> UInt64 {
    precondition(bound > 0, "there is no number below 0")
    return next().multipliedFullWidth(by: bound).high
  }

  /// A number of the range, its ends included.
  public mutating func next(in range: ClosedRange<Int>) -> Int {
    let span = UInt64(bitPattern: Int64(range.upperBound &- range.lowerBound))
    if span == .max { return Int(truncatingIfNeeded: next()) }
    return range.lowerBound &+ Int(truncatingIfNeeded: next(below: span + 1))
  }

  /// A duration of the range, its ends included, to the nanosecond.
  public mutating func next(in range: ClosedRange<Duration>) -> Duration {
    let low = Int(range.lowerBound.clampedNanoseconds)
    let high = Int(range.upperBound.clampedNanoseconds)
    return .nanoseconds(next(in: low...high))
  }

  /// True once in so many times; never for 0 or less, always for 1.
  public mutating func oneIn(_ count: Int) -> Bool {
    count > 0 && next(below: UInt64(count)) == 0
  }

  /// Puts the elements in an order of its own choosing.
  public mutating func shuffle<Element>(_ elements: inout [Element]) {
    guard elements.count > 1 else { return }
    for index in stride(from: elements.count - 1, to: 0, by: -1) {
      elements.swapAt(index, Int(next(below: UInt64(index) + 1)))
    }
  }
}
