/// Values under the numbers they came with, in an array that is used round and round.
///
///     slots   [ 8 | 9 |   |   | 5 | 6 | 7 ]
///                       ▲       ▲
///                      end    start
@usableFromInline
struct ReplayBuffer<Value> {
  @usableFromInline var slots: ContiguousArray<Value?> = []
  @usableFromInline var head = 0

  /// The number of the first value.
  @usableFromInline var start = 0
  @usableFromInline var count = 0

  @inlinable init() {}

  /// The number that the next value will have.
  @inlinable var end: Int { start + count }

  /// The value with a number from `start` to before `end`.
  @inlinable
  subscript(number: Int) -> Value { unsafe slots[wrapped(head + number - start)].unsafelyUnwrapped }

  @inlinable
  mutating func append(_ value: Value) {
    if count == slots.count { grow() }
    slots[wrapped(head + count)] = value
    count += 1
  }

  @inlinable
  mutating func removeFirst() -> Value? {
    guard count > 0 else { return nil }
    defer {
      head = wrapped(head + 1)
      start += 1
      count -= 1
    }
    return slots[head].take()
  }

  @inlinable
  func wrapped(_ index: Int) -> Int { index < slots.count ? index : index - slots.count }

  @inlinable
  mutating func grow() {
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
