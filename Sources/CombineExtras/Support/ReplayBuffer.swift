/// Values under the numbers they came with, in an array that is used round and round.
///
///     slots   [ 8 | 9 |   |   | 5 | 6 | 7 ]
///                       ▲       ▲
///                      end    start
struct ReplayBuffer<Value> {
  private var slots: ContiguousArray<Value?> = []
  private var head = 0

  /// The number of the first value.
  private(set) var start = 0
  private(set) var count = 0

  /// The number that the next value will have.
  var end: Int { start + count }

  /// The value with a number from `start` to before `end`.
  subscript(number: Int) -> Value {
    unsafe slots[wrapped(head + number - start)].unsafelyUnwrapped
  }

  mutating func append(_ value: Value) {
    if count == slots.count { grow() }
    slots[wrapped(head + count)] = value
    count += 1
  }

  mutating func removeFirst() -> Value? {
    guard count > 0 else { return nil }
    defer {
      head = wrapped(head + 1)
      start += 1
      count -= 1
    }
    return slots[head].take()
  }

  private func wrapped(_ index: Int) -> Int {
    index < slots.count ? index : index - slots.count
  }

  private mutating func grow() {
    var larger = ContiguousArray<Value?>()
    larger.reserveCapacity(max(4, count * 2))
    for index in 0..<count {
      larger.append(slots[wrapped(head + index)].take())
    }
    larger.append(contentsOf: repeatElement(nil, count: max(4, count * 2) - count))
    slots = larger
    head = 0
  }
}
