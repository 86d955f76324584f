/// The timers of one loop: a binary heap by deadline, with the heap position of each timer kept beside its job, so that
/// cancelling takes the timer out at once.
///
/// Connections re-arm their keepalive timers all the time; a heap that only marked cancelled timers would fill with dead
/// ones. Timers with the same deadline come out in the order in which they were scheduled.
///
/// Jobs are handed back to the caller, never run or released in here: they may call the loop again.
package struct TimerHeap {
  package typealias Job = () -> Void

  private struct Entry {
    var deadline: UInt64
    var order: UInt64
    var slot: Int32

    func precedes(_ other: Entry) -> Bool {
      deadline < other.deadline || (deadline == other.deadline && order < other.order)
    }
  }

  private struct Slot {
    var job: Job?
    /// Counts the timers that used this slot, so that a token of an earlier one is recognised.
    var use: UInt64
    /// Where the timer stands in the heap; of a free slot, the next free one or -1.
    var position: Int32
  }

  private static let slotBits: UInt64 = 24
  private static let slotMask: UInt64 = (1 << slotBits) - 1

  private var heap: [Entry] = []
  private var slots: [Slot] = []
  private var firstFree: Int32 = -1
  private var scheduled: UInt64 = 0

  package init() {}

  var count: Int { heap.count }

  /// Memory that is kept for timers past and present, in entries.
  var slotCount: Int { slots.count }

  /// When the next timer is due, in nanoseconds.
  package var nextDeadline: UInt64? { heap.first?.deadline }

  /// Marks this moment among the calls of `schedule`, for `popDue`.
  package var mark: UInt64 { scheduled }

  package mutating func schedule(at deadline: MonotonicTime, _ job: @escaping Job) -> TimerToken {
    let slot = takeSlot(job)
    heap.append(Entry(deadline: deadline.nanoseconds, order: scheduled, slot: slot))
    scheduled += 1
    rise(from: heap.count - 1)
    return TimerToken(number: slots[Int(slot)].use << Self.slotBits | UInt64(slot))
  }

  /// Takes a timer out. Returns its job, for the caller to release; nil when it isn't scheduled any more.
  package mutating func cancel(_ token: TimerToken) -> Job? {
    let index = Int(token.number & Self.slotMask)
    guard index < slots.count, slots[index].job != nil, slots[index].use == token.number >> Self.slotBits
    else { return nil }
    removeEntry(at: Int(slots[index].position))
    return freeSlot(Int32(index))
  }

  /// Takes out the first timer that is due at `now` and was scheduled before `mark`.
  ///
  /// A timer that each time schedules another one for the present moment therefore can't keep its caller in a loop.
  package mutating func popDue(at now: MonotonicTime, before mark: UInt64) -> Job? {
    guard let first = heap.first, first.deadline <= now.nanoseconds, first.order < mark else { return nil }
    removeEntry(at: 0)
    return freeSlot(first.slot)
  }

  /// Takes out everything. Returns the jobs, for the caller to release.
  package mutating func removeAll() -> [Job] {
    let jobs = slots.compactMap(\.job)
    for entry in heap { _ = freeSlot(entry.slot) }
    heap = []
    return jobs
  }

  // MARK: Slots

  private mutating func takeSlot(_ job: @escaping Job) -> Int32 {
    if firstFree >= 0 {
      let slot = firstFree
      firstFree = slots[Int(slot)].position
      slots[Int(slot)].job = job
      slots[Int(slot)].use += 1
      return slot
    }
    precondition(slots.count < Int(Self.slotMask), "more than 16 million timers on one loop")
    slots.append(Slot(job: job, use: 1, position: 0))
    return Int32(slots.count - 1)
  }

  private mutating func freeSlot(_ slot: Int32) -> Job? {
    let job = slots[Int(slot)].job
    slots[Int(slot)].job = nil
    slots[Int(slot)].position = firstFree
    firstFree = slot
    return job
  }

  // MARK: Heap

  private mutating func removeEntry(at position: Int) {
    let last = heap.removeLast()
    guard position < heap.count else { return }
    let removed = heap[position]
    heap[position] = last
    if last.precedes(removed) { rise(from: position) } else { sink(from: position) }
  }

  private mutating func rise(from start: Int) {
    var position = start
    let entry = heap[position]
    while position > 0 {
      let parent = (position - 1) / 2
      guard entry.precedes(heap[parent]) else { break }
      place(heap[parent], at: position)
      position = parent
    }
    place(entry, at: position)
  }

  private mutating func sink(from start: Int) {
    var position = start
    let entry = heap[position]
    while true {
      var child = 2 * position + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].precedes(heap[child]) { child += 1 }
      guard heap[child].precedes(entry) else { break }
      place(heap[child], at: position)
      position = child
    }
    place(entry, at: position)
  }

  private mutating func place(_ entry: Entry, at position: Int) {
    heap[position] = entry
    slots[Int(entry.slot)].position = Int32(position)
  }

  #if DEBUG
    /// The heap order holds, and every timer is in the slot that it names. For tests.
    func checkInvariants() {
      for (position, entry) in heap.enumerated() {
        precondition(position == 0 || !entry.precedes(heap[(position - 1) / 2]), "heap order")
        precondition(slots[Int(entry.slot)].position == Int32(position), "slot position")
        precondition(slots[Int(entry.slot)].job != nil, "scheduled timer without a job")
      }
      precondition(slots.count { $0.job != nil } == heap.count, "slot in use outside the heap")
    }
  #endif
}
