import SluiceStore
import SluiceWire

/// The records and states of a durable topic that aren't on disk yet.
///
/// ```
///    0 ............ committed ......... taken .............................. next offset
///    | in the store | in commits      | `full` | `full` | ... | `waiting`   |
/// ```
///
/// A value without I/O: it belongs to its topic's state, and is protected by the topic's lock.
package struct UncommittedTail {
  /// What a commit takes along of it.
  package struct Taken {
    var blocks: [BatchBlock] = []
    package var bytes = 0
    /// Which record is expected next of each producer that has any in those.
    package var producers: [UInt64: UInt64] = [:]
    /// Names of durable cursors that have moved or are gone.
    package var cursors: Set<String> = []
    /// Names of groups that are gone.
    var deletedGroups: Set<String> = []
    /// There is a group that was never stored.
    var isGroupDue = false
    var isRowDue = false
    package var ending: PendingEnding?
    var completions: [Completion] = []
    /// How many calls of ``UncommittedTail/take()`` it is from.
    fileprivate(set) var takes = 0
    /// Whether more waited behind it, which is due at once.
    package fileprivate(set) var hasMore = false

    /// Adds what was taken next, so that both are in one commit.
    mutating func merge(_ next: Taken) {
      blocks += next.blocks
      bytes += next.bytes
      producers.merge(next.producers) { $1 }
      cursors.formUnion(next.cursors)
      deletedGroups.formUnion(next.deletedGroups)
      isGroupDue = isGroupDue || next.isGroupDue
      isRowDue = isRowDue || next.isRowDue
      ending = next.ending ?? ending
      completions += next.completions
      takes += next.takes
      hasMore = next.hasMore
    }
  }

  /// What waits for a commit.
  package struct Completion: Sendable {
    /// The cursor or group that it waits for; nil for the topic's records and row.
    package var name: String?
    /// Called with the reason when what it waits for can't be stored, with nil when it is.
    package var body: @Sendable (Fault?) -> Void
  }

  /// A terminal event; subscribers get it once it is on disk.
  package struct PendingEnding {
    package var ending: Complete.Ending
    package var producer: UInt64
  }

  /// The offset that the next record gets.
  package private(set) var nextOffset: UInt64
  /// The offset behind the last record on disk.
  package private(set) var committed: UInt64
  /// Bytes that wait, or are in a commit.
  package private(set) var waitingBytes = 0
  /// How soon a commit is to come, as was asked for; nil when none is due.
  package private(set) var delay: Duration?

  private var bytesThrough: UInt64
  /// Gives records their times.
  package private(set) var clock: RecordClock
  /// So many bytes of records make a commit.
  private let commitBytes: Int
  /// What came first, in portions of a commit each; records only, and what was noted while they came.
  private var full: [Taken] = []
  /// What came last.
  private var waiting = Taken()
  /// How many times something was taken of which it isn't known yet what became of it.
  private var inCommit = 0
  package private(set) var ending: PendingEnding?

  /// - Parameters:
  ///   - extent: what is in the store.
  ///   - commitBytes: so many bytes of records make a commit, unless a single batch has more.
  ///   - clock: the clock of these records.
  init(_ extent: StoredExtent, commitBytes: Int = .max, clock: RecordClock = RecordClock()) {
    self.clock = clock
    self.commitBytes = commitBytes
    nextOffset = extent.head
    committed = extent.head
    bytesThrough = extent.bytesThrough
  }

  // MARK: What comes

  /// Takes a batch of records.
  ///
  /// - Returns: the offset of the first.
  package mutating func append(_ batch: UnsafeRawBufferPointer, count: UInt32, at milliseconds: Int64)
    -> UInt64
  {
    let first = nextOffset
    if batch.count > commitBytes - waiting.bytes, !waiting.blocks.isEmpty {
      full.append(waiting)
      waiting = Taken()
      // The writer may have left what was due for more to come.
      delay = nil
    }
    tell(milliseconds)
    let time = clock.append(at: milliseconds, head: nextOffset)
    var rest = unsafe batch
    var left = Int(count)
    while left > 0 {
      if waiting.blocks.isEmpty { openBlock() }
      let block = waiting.blocks[waiting.blocks.count - 1]
      let before = block.bytes
      let taken = unsafe block.append(rest, count: left, time: time)
      waiting.bytes += block.bytes - before
      waitingBytes += block.bytes - before
      nextOffset += UInt64(taken.records)
      bytesThrough += UInt64(taken.bytes)
      left -= taken.records
      unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[taken.bytes...])
      if left > 0 { openBlock() }
    }
    return first
  }

  /// Takes the present time. The topic's row, which has the setbacks, is stored with or before the next records.
  ///
  /// - Returns: whether the clock was set back.
  @discardableResult
  package mutating func tell(_ milliseconds: Int64) -> Bool {
    guard clock.tell(milliseconds, head: nextOffset) else { return false }
    noteRow()
    return true
  }

  private mutating func openBlock() {
    waiting.blocks.append(BatchBlock(firstOffset: nextOffset, bytesBefore: bytesThrough))
  }

  /// A producer has appended what comes before that sequence.
  package mutating func note(producer: UInt64, next: UInt64) { waiting.producers[producer] = next }

  package mutating func note(cursor name: String) { waiting.cursors.insert(name) }

  package mutating func note(deletedGroup name: String) { waiting.deletedGroups.insert(name) }

  /// A group of that name is there again.
  package mutating func note(madeGroup name: String) {
    waiting.deletedGroups.remove(name)
    waiting.isGroupDue = true
  }

  /// A group has a state that is waited for.
  mutating func noteGroup() { waiting.isGroupDue = true }

  mutating func noteRow() { waiting.isRowDue = true }

  /// The topic is over as soon as that is on disk.
  package mutating func end(_ ending: Complete.Ending, by producer: UInt64) {
    let pending = PendingEnding(ending: ending, producer: producer)
    self.ending = pending
    waiting.ending = pending
    waiting.isRowDue = true
  }

  /// Calls the completion when everything noted so far is on disk. Returns false when it is already.
  package mutating func whenCommitted(_ completion: Completion) -> Bool {
    guard inCommit > 0 || hasWaiting else { return false }
    waiting.completions.append(completion)
    return true
  }

  private var hasWaiting: Bool {
    !full.isEmpty || !waiting.blocks.isEmpty || waiting.isRowDue
      || !waiting.producers.isEmpty || !waiting.cursors.isEmpty
      || !waiting.deletedGroups.isEmpty || waiting.isGroupDue || !waiting.completions.isEmpty
  }

  /// Bytes that wait for the next commit.
  var bytesForNextCommit: Int { waiting.bytes }

  /// Asks for a commit within that time. Returns false when one is due by then anyway.
  package mutating func ask(within time: Duration) -> Bool {
    if let delay, delay <= time { return false }
    delay = time
    return true
  }

  // MARK: What goes

  /// Takes what waits, for a commit: a commit's portion of it, if there is more. Others may be under way.
  ///
  /// - Parameter takesAll: takes all that waits, however much it is.
  package mutating func take(all takesAll: Bool = false) -> Taken {
    var taken = waiting
    if !full.isEmpty {
      if takesAll {
        taken = full.reduce(into: Taken()) { $0.merge($1) }
        taken.merge(waiting)
        full = []
      } else {
        taken = full.removeFirst()
        taken.hasMore = true
      }
    }
    if !taken.hasMore { waiting = Taken() }
    delay = taken.hasMore ? .zero : nil
    inCommit += 1
    taken.takes = 1
    return taken
  }

  /// What was taken last isn't on disk, and waits again, ahead of what has come since.
  package mutating func undo(_ taken: Taken) {
    inCommit -= taken.takes
    var again = taken
    again.takes = 0
    again.hasMore = false
    guard full.isEmpty else { return full.insert(again, at: 0) }
    again.merge(waiting)
    waiting = again
  }

  /// Takes the completions that came since the topic was removed from the disk: nothing is committed of it any more.
  mutating func takeCompletions() -> [Completion] {
    defer { waiting.completions = [] }
    return full.flatMap(\.completions) + waiting.completions
  }

  /// What was taken can't be stored: the records among it, and those that have come since, are dropped.
  ///
  /// - Returns: how many bytes of records no longer wait, and what waited for them.
  mutating func discard(_ taken: Taken) -> (bytes: Int, completions: [Completion]) {
    inCommit = 0
    let dropped = (waitingBytes, taken.completions + takeCompletions())
    full = []
    waiting = Taken()
    waitingBytes = 0
    ending = nil
    return dropped
  }

  /// What was taken first is on disk.
  package mutating func committed(_ taken: Taken) {
    inCommit -= taken.takes
    waitingBytes -= taken.bytes
    committed = taken.blocks.last?.endOffset ?? committed
    if taken.ending != nil { ending = nil }
  }
}
