import SluiceWire
import Synchronization

// The storage of a topic's newest records.
//
// The store has the topic's batches, as of any other topic. Before the store drops old batches, it *carries* the records in them that are
// still the newest of their keys. It stores each once more, as a separate record, until a newer one replaces it or it is dropped.
//
// ```
//    0 ...................... carried before ............ head
//    | carried, one by one    | in the batches of the store |
// ```
//
// Each record is therefore stored at most twice, and dead records take space only in the batches behind the mark.
extension CompactedRecords {
  /// The state that is needed, besides the records themselves, to restore them.
  public struct Marks: Hashable, Sendable {
    /// Records before this offset are carried, as far as they are the newest of their keys.
    public var carriedBefore: UInt64
    /// Records before this one are beyond the limits, or were trimmed.
    public var keptFrom: UInt64
    /// Deletions before this one are no longer known.
    public var deletionsFrom: UInt64

    public init(carriedBefore: UInt64, keptFrom: UInt64, deletionsFrom: UInt64) {
      self.carriedBefore = carriedBefore
      self.keptFrom = keptFrom
      self.deletionsFrom = deletionsFrom
    }
  }

  /// The state that was stored last, and the changes since.
  struct Storage {
    /// The marks that the store has, or is about to have.
    var stored: Marks
    /// A lower bound of the bytes that the topic's records have had up to the first that isn't carried.
    var carriedBytes: UInt64 = 0
    /// Offsets of carried records that aren't the newest of their keys any more, or were dropped.
    var gone: [UInt64] = []

    init(from offset: UInt64) {
      stored = Marks(carriedBefore: offset, keptFrom: offset, deletionsFrom: offset)
    }

    mutating func removed(_ offset: UInt64) {
      if offset < stored.carriedBefore { gone.append(offset) }
    }
  }

  /// The changes for the next commit.
  public struct StorageChanges: Sendable {
    /// Offsets of carried records that are to be removed.
    public var gone: [UInt64] = []
    /// Nil when the store has them.
    public var marks: Marks?
    /// The offset before which batches may be dropped.
    public var carriedBefore: UInt64
  }

  /// Takes the changes that the store has yet to make, and carries records if too many bytes of batches have gathered.
  ///
  /// The caller commits them together with all records that were appended before this call, if these aren't stored already.
  ///
  /// - Parameters:
  ///   - end: the offset of the first record that isn't stored, in a commit that has succeeded.
  ///   - bytesThrough: bytes of the topic's records before that one, since the topic began.
  ///   - portion: about the most bytes to carry; at least one record is.
  ///   - carry: gets each record that is to be stored by itself, in the order of their offsets.
  public func takeStorageChanges(
    before end: UInt64, bytesThrough: UInt64, portion: Int, _ carry: (CompactedRecord) -> Void
  ) -> StorageChanges {
    state.withLock { state in
      guard let former = state.storage?.stored else { return StorageChanges(carriedBefore: 0) }
      state.lapse()
      var marks = state.marks(carriedBefore: former.carriedBefore)
      if state.mustCarry(before: end, bytesThrough) {
        marks.carriedBefore = state.carry(before: end, bytesThrough, portion, carry)
      }
      state.storage?.stored = marks
      var changes = StorageChanges(marks: marks == former ? nil : marks, carriedBefore: marks.carriedBefore)
      swap(&changes.gone, &state.storage!.gone)
      return changes
    }
  }

  /// Whether ``takeStorageChanges(before:bytesThrough:portion:_:)`` has something for a commit.
  public func hasStorageChanges(before end: UInt64, bytesThrough: UInt64) -> Bool {
    state.withLock { state in
      guard let storage = state.storage else { return false }
      state.lapse()
      return !storage.gone.isEmpty
        || state.marks(carriedBefore: storage.stored.carriedBefore) != storage.stored
        || state.mustCarry(before: end, bytesThrough)
    }
  }

  /// The offset before which batches of the store may be dropped.
  public var carriedBefore: UInt64 { state.withLock { $0.storage?.stored.carriedBefore ?? 0 } }

  /// Keeps no record before that offset, those included that are appended later. The existing records before it must
  /// have been trimmed.
  public func raise(keptFrom offset: UInt64) {
    state.withLock { state in
      state.firstKept = max(state.firstKept, offset)
      state.trimmedTo = max(state.trimmedTo, offset)
    }
  }

  // MARK: Taking them up again

  /// Begins to take up what is stored. Carried records come first, then those of batches from ``Marks/carriedBefore`` on.
  ///
  /// - Parameters:
  ///   - marks: as they are stored; nil for a topic that has carried nothing.
  ///   - first: where the stored batches begin.
  ///   - bytesBefore: bytes of the topic's records before that.
  public func beginRestoring(_ marks: Marks?, batchesFrom first: UInt64, bytesBefore: UInt64) {
    state.withLock { state in
      state.storage = Storage(from: first)
      state.storage?.carriedBytes = bytesBefore
      if let marks { state.storage?.stored = marks }
      (state.head, state.firstKept) = (0, 0)
      (state.recordsLostBefore, state.deletionsLostBefore) = (0, 0)
    }
  }

  /// Takes a record up that was stored. Offsets ascend.
  ///
  /// - Parameter item: whole, with a key.
  public func restore(_ item: UnsafeRawBufferPointer, at offset: UInt64, time: Int64) {
    state.withLock { state in
      state.head = offset
      // A time that goes back says that the clock was set back there.
      _ = state.clock.append(at: time, head: offset)
      unsafe put(item, &state)
      state.head = offset + 1
    }
  }

  /// Everything that is stored was taken up, and what the marks exclude is dropped.
  ///
  /// - Parameters:
  ///   - head: the offset that the next record gets.
  ///   - time: that of the last record.
  ///   - now: the time, in milliseconds since 1970, at which ages are measured: records that are too old by then are dropped as
  ///     well.
  ///   - lost: batches before this offset couldn't be read, so that deletions may be missing; 0 for none.
  public func finishRestoring(head: UInt64, time: Int64, now: Int64, lostBefore lost: UInt64) {
    state.withLock { state in
      let marks = state.storage?.stored ?? Marks(carriedBefore: 0, keptFrom: 0, deletionsFrom: 0)
      state.head = head
      state.clock.tell(time, head: head)
      state.clock.tell(now, head: head)
      state.firstKept = min(marks.keptFrom, head)
      state.recordsLostBefore = state.firstKept
      state.deletionsLostBefore = min(max(marks.deletionsFrom, lost), head)
      while let place = state.records.first, state.records.entry(place).offset < state.firstKept {
        state.forget(place, state.records.entry(place))
      }
      while let place = state.deletions.first, state.deletions.entry(place).offset < state.deletionsLostBefore
      {
        state.forget(place, state.deletions.entry(place))
      }
      state.lapsed = 0
      state.lapsedBytes = 0
      state.lapse()
      state.drop(beyond: graceBytes, deletionsBeyond: graceBytes, keepingFrom: nil)
      account(&state)
    }
  }
}

extension CompactedRecords.State {
  /// So many bytes of batches may gather before records are carried, or as many as the newest records take, if that is more.
  private static let leastBatchBytes = 1 << 20

  fileprivate func marks(carriedBefore offset: UInt64) -> CompactedRecords.Marks {
    CompactedRecords.Marks(
      carriedBefore: offset, keptFrom: firstKept, deletionsFrom: deletionsLostBefore)
  }

  fileprivate func mustCarry(before end: UInt64, _ bytesThrough: UInt64) -> Bool {
    guard let storage, storage.stored.carriedBefore < end else { return false }
    let gathered = bytesThrough - min(storage.carriedBytes, bytesThrough)
    return gathered > UInt64(max(Self.leastBatchBytes, records.bytes + deletions.bytes))
  }

  /// Hands out the next records and deletions to be carried. Returns the offset before which all are carried then.
  fileprivate mutating func carry(
    before end: UInt64, _ bytesThrough: UInt64, _ portion: Int, _ body: (CompactedRecord) -> Void
  ) -> UInt64 {
    let start = storage?.stored.carriedBefore ?? end
    var record = records.first(from: start)
    var deletion = deletions.first(from: start)
    var bytes = 0
    while true {
      let nextRecord = record.map { records.entry($0).offset } ?? .max
      let nextDeletion = deletion.map { deletions.entry($0).offset } ?? .max
      let next = min(nextRecord, nextDeletion)
      guard next < end else {
        storage?.carriedBytes = bytesThrough
        return end
      }
      guard bytes == 0 || bytes < portion else {
        storage?.carriedBytes += UInt64(bytes)
        return next
      }
      if nextRecord < nextDeletion, let place = record {
        body(records.shown(place))
        bytes += Int(records.entry(place).length)
        record = records.next(after: place)
      } else if let place = deletion {
        body(deletions.shown(place))
        bytes += Int(deletions.entry(place).length)
        deletion = deletions.next(after: place)
      }
    }
  }
}
