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
  /// The changes that one commit takes from the tail.
  package struct Taken {
    var blocks: [BatchBlock] = []
    package var bytes = 0
    /// The next sequence of each producer with records in `blocks`.
    package var producers: [UInt64: UInt64] = [:]
    /// Names of durable cursors that have moved or were deleted.
    package var cursors: Set<String> = []
    /// Names of deleted groups.
    var deletedGroups: Set<String> = []
    /// A group must be stored soon: it was never stored, or a client waits for its state.
    var isGroupDue = false
    var isRowDue = false
    package var ending: PendingEnding?
    var completions: [Completion] = []
    /// The number of calls of ``UncommittedTail/take(all:)`` whose results it contains.
    fileprivate(set) var takes = 0
    /// Whether more changes wait, which are due at once.
    package fileprivate(set) var hasMore = false

    /// Adds the changes taken next, so that both are in one commit.
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

  /// A callback that waits for a commit.
  package struct Completion: Sendable {
    /// The cursor or group that it waits for; nil for the topic's records and row.
    package var name: String?
    /// Called with nil when the cursor, group or records are stored, or with the reason if that is impossible.
    package var body: @Sendable (Fault?) -> Void
  }

  /// A terminal event; subscribers get it once it is on disk.
  package struct PendingEnding {
    package var ending: Complete.Ending
    package var producer: UInt64
  }

  /// The offset that the next record gets.
  package private(set) var nextOffset: UInt64
  /// The offset after the last record on disk.
  package private(set) var committed: UInt64
  /// Bytes of records that wait, or are in a commit in progress.
  package private(set) var waitingBytes = 0
  /// The requested delay of the next commit; nil if none is due.
  package private(set) var delay: Duration?

  private var bytesThrough: UInt64
  /// Assigns times to records.
  package private(set) var clock: RecordClock
  /// Bytes of records of a full commit.
  private let commitBytes: Int
  /// The oldest changes, in portions of one commit each: records, and the changes noted before the next portion began.
  private var full: [Taken] = []
  /// The newest changes.
  private var waiting = Taken()
  /// The number of calls of ``take(all:)`` whose commits are in progress.
  private var inCommit = 0
  package private(set) var ending: PendingEnding?

  /// - Parameters:
  ///   - extent: the records in the store.
  ///   - commitBytes: bytes of records of a full commit; a single batch may have more.
  ///   - clock: the clock of these records.
  init(_ extent: StoredExtent, commitBytes: Int = .max, clock: RecordClock = RecordClock()) {
    self.clock = clock
    self.commitBytes = commitBytes
    nextOffset = extent.head
    committed = extent.head
    bytesThrough = extent.bytesThrough
  }

  // MARK: Adding changes

  /// Appends a batch of records.
  ///
  /// - Returns: the offset of the first.
  package mutating func append(_ batch: UnsafeRawBufferPointer, count: UInt32, at milliseconds: Int64)
    -> UInt64
  {
    let first = nextOffset
    if batch.count > commitBytes - waiting.bytes, !waiting.blocks.isEmpty {
      full.append(waiting)
      waiting = Taken()
      // The writer may have put off a due commit until more records arrive.
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

  /// Updates the clock. If it was set back, the topic's row, which contains the setbacks, is stored with or before the next records.
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

  /// Notes the next sequence of a producer after its records were appended.
  package mutating func note(producer: UInt64, next: UInt64) { waiting.producers[producer] = next }

  package mutating func note(cursor name: String) { waiting.cursors.insert(name) }

  package mutating func note(deletedGroup name: String) { waiting.deletedGroups.insert(name) }

  /// Notes that a group of that name was created, possibly after its deletion.
  package mutating func note(madeGroup name: String) {
    waiting.deletedGroups.remove(name)
    waiting.isGroupDue = true
  }

  /// Notes that a client waits for a group's state to be stored.
  mutating func noteGroup() { waiting.isGroupDue = true }

  mutating func noteRow() { waiting.isRowDue = true }

  /// Ends the topic, once the terminal event is on disk.
  package mutating func end(_ ending: Complete.Ending, by producer: UInt64) {
    let pending = PendingEnding(ending: ending, producer: producer)
    self.ending = pending
    waiting.ending = pending
    waiting.isRowDue = true
  }

  /// Registers a callback for when all changes noted so far are on disk. Returns false if they already are.
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

  /// Requests a commit within that time. Returns false if one is due by then anyway.
  package mutating func ask(within time: Duration) -> Bool {
    if let delay, delay <= time { return false }
    delay = time
    return true
  }

  // MARK: Taking changes

  /// Takes the waiting changes for a commit: at most one commit's portion. Other commits may be in progress.
  ///
  /// - Parameter takesAll: whether to take all waiting changes, regardless of their size.
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

  /// Restores the changes taken last, which aren't on disk, before newer ones.
  package mutating func undo(_ taken: Taken) {
    inCommit -= taken.takes
    var again = taken
    again.takes = 0
    again.hasMore = false
    guard full.isEmpty else { return full.insert(again, at: 0) }
    again.merge(waiting)
    waiting = again
  }

  /// Takes the callbacks registered after the topic was removed from the disk; its changes are no longer committed.
  mutating func takeCompletions() -> [Completion] {
    defer { waiting.completions = [] }
    return full.flatMap(\.completions) + waiting.completions
  }

  /// Drops changes that can't be stored, and all newer ones, including their records.
  ///
  /// - Returns: the bytes of records that no longer wait, and the callbacks that waited for them.
  mutating func discard(_ taken: Taken) -> (bytes: Int, completions: [Completion]) {
    inCommit = 0
    let dropped = (waitingBytes, taken.completions + takeCompletions())
    full = []
    waiting = Taken()
    waitingBytes = 0
    ending = nil
    return dropped
  }

  /// Completes the changes taken first, which are now on disk.
  package mutating func committed(_ taken: Taken) {
    inCommit -= taken.takes
    waitingBytes -= taken.bytes
    committed = taken.blocks.last?.endOffset ?? committed
    if taken.ending != nil { ending = nil }
  }
}
