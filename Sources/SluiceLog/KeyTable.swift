/// Where a record stands in a ``RecordRun``.
struct RecordPlace: Hashable {
  /// The number of its chunk, which says by its highest bit in which of two runs that is.
  var chunk: UInt32
  var entry: UInt32

  /// Nowhere.
  static let none = RecordPlace(chunk: .max, entry: .max)
}

/// The place of each key's record, found by the key's hash: open addressing with linear probing, at most three quarters full.
///
/// It stores no keys: the caller of a look-up compares them in place. Nothing is moved by looking up, or by giving a key
/// another place; inserting and removing move slots.
// @unchecked: its memory has one owner, this value, which the lock of its store protects.
@safe
struct KeyTable: ~Copyable, @unchecked Sendable {
  private struct Slot {
    var hash: UInt32
    /// ``RecordPlace/none`` in an empty slot.
    var place: RecordPlace
  }

  private static let leastCapacity = 16

  private(set) var count = 0
  private var capacity = leastCapacity
  private var slots = unsafe allocate(leastCapacity)

  deinit {
    unsafe slots.deallocate()
  }

  var memoryBytes: Int { capacity * MemoryLayout<Slot>.stride }

  subscript(slot: Int) -> RecordPlace {
    get { unsafe slots[slot].place }
    nonmutating set { unsafe slots[slot].place = newValue }
  }

  /// The slot with this hash for whose place `isSought` holds.
  @inline(__always)
  func find(_ hash: UInt32, where isSought: (RecordPlace) -> Bool) -> Int? {
    let mask = capacity &- 1
    var slot = Int(hash) & mask
    while unsafe slots[slot].place.chunk != RecordPlace.none.chunk {
      if unsafe slots[slot].hash == hash, unsafe isSought(slots[slot].place) { return slot }
      slot = (slot &+ 1) & mask
    }
    return nil
  }

  /// A key that isn't in the table yet.
  mutating func insert(_ hash: UInt32, at place: RecordPlace) {
    if (count + 1) * 4 > capacity * 3 { resize(to: capacity * 2) }
    count += 1
    put(Slot(hash: hash, place: place))
  }

  /// Empties a slot. Those that were pushed behind it move up, so that no mark has to stay.
  mutating func remove(_ slot: Int) {
    let mask = capacity &- 1
    var hole = slot
    var next = (slot &+ 1) & mask
    while unsafe slots[next].place.chunk != RecordPlace.none.chunk {
      let home = unsafe Int(slots[next].hash) & mask
      // It may move up if the hole isn't before its home slot.
      if (next &- home) & mask >= (next &- hole) & mask {
        unsafe slots[hole] = unsafe slots[next]
        hole = next
      }
      next = (next &+ 1) & mask
    }
    unsafe slots[hole].place = .none
    count -= 1
    if capacity > Self.leastCapacity, count * 8 < capacity { resize(to: capacity / 4) }
  }

  private func put(_ new: Slot) {
    let mask = capacity &- 1
    var slot = Int(new.hash) & mask
    while unsafe slots[slot].place.chunk != RecordPlace.none.chunk { slot = (slot &+ 1) & mask }
    unsafe slots[slot] = new
  }

  private mutating func resize(to newCapacity: Int) {
    let (old, oldCapacity) = unsafe (slots, capacity)
    capacity = max(newCapacity, Self.leastCapacity)
    unsafe slots = unsafe Self.allocate(capacity)
    for slot in 0..<oldCapacity where unsafe old[slot].place.chunk != RecordPlace.none.chunk {
      unsafe put(old[slot])
    }
    unsafe old.deallocate()
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
    let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity)
    unsafe slots.initialize(repeating: Slot(hash: 0, place: .none), count: capacity)
    return unsafe slots
  }
}
