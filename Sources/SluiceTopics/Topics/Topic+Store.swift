import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

// Writes a durable topic's changes to the store, and completes them once they are on disk.
extension Topic: DurableTopic {
  /// Takes the waiting changes for a commit. Nil if the topic was already deleted from the store. On the writer's loop.
  ///
  /// - Parameter clocks: the writer's.
  /// - Returns: besides, the offset from which on records must be kept for a reader, whatever the limits.
  package func takeForCommit(at clocks: ClockReading) -> (
    taken: UncommittedTail.Taken, change: TopicChange, keep: UInt64?
  )? {
    guard let storage else { return nil }
    let (result, groups): ((UncommittedTail.Taken, TopicChange, UInt64?)?, [Group]) = state.withLock {
      state in
      let isDeleted = state.isDeleted
      guard let taken = state.tail?.take(all: isDeleted) else { return (nil, []) }
      var change = TopicChange(storage.id)
      if isDeleted {
        change.isDeletion = true
        return ((taken, change, nil), [])
      }
      if taken.isRowDue { change.row = row(state, taken.ending) }
      addStates(taken, &state, to: &change)
      storage.addNewest(to: &change)
      return ((taken, change, keepFrom(state)), Array(state.groups.values))
    }
    guard var result else { return nil }
    var isLeft = false
    for group in groups {
      switch group.takeForCommit(at: clocks) {
      case .nothing: break
      case .later: isLeft = true
      case .value(let value):
        result.1.states.append(.init(.group, key: StoredValue.key(group.name), value: value))
      }
    }
    if isLeft { groupMoved() }
    return result
  }

  /// The change that stores the topic's present properties; nil for a topic in memory.
  var rowChange: TopicChange? {
    storage.map { storage in
      var change = TopicChange(storage.id)
      change.row = state.withLock { row($0, nil) }
      return change
    }
  }

  private func row(_ state: State, _ ending: UncommittedTail.PendingEnding?) -> StoredTopic {
    StoredTopic(
      name: name, settings: settings, epoch: state.epoch.number, lineage: state.epoch.lineage,
      ending: ending?.ending ?? state.epoch.ending, endedBy: ending?.producer ?? state.endedBy,
      isStated: state.isStated, floor: storage?.raisedFloor.offset ?? 0,
      setbacks: storage?.clock.setbacks ?? [])
  }

  private func addStates(
    _ taken: UncommittedTail.Taken, _ state: inout State, to change: inout TopicChange
  ) {
    for producer in state.producers.takeForgotten() where taken.producers[producer] == nil {
      change.states.append(.init(.producer, key: StoredValue.key(producer), value: nil))
    }
    for (producer, next) in taken.producers {
      change.states.append(
        .init(.producer, key: StoredValue.key(producer), value: StoredProducer(next: next).encoded()))
    }
    for name in taken.cursors.union(state.cursors.takeForgotten()) {
      let value = state.cursors.place(of: name).map { StoredCursor($0).encoded() }
      change.states.append(.init(.cursor, key: StoredValue.key(name), value: value))
    }
    for name in taken.deletedGroups where state.groups[name] == nil {
      change.states.append(.init(.group, key: StoredValue.key(name), value: nil))
    }
  }

  /// Restores changes that were taken, because the commit failed or wasn't needed.
  package func undo(_ taken: UncommittedTail.Taken) {
    state.withLock { $0.tail?.undo(taken) }
  }

  /// Completes changes that are on disk: subscribers get the records, and callbacks are called. On the writer's loop.
  package func committed(_ commit: TopicCommit) {
    let isSynchronous = storage?.isSynchronous ?? false
    var late: [UncommittedTail.Completion] = []
    defer { for completion in late { completion.body(nil) } }
    let (loopStates, hasEnded): ([TopicLoopState], Bool) = state.withLock { state in
      state.tail?.committed(commit.taken)
      if commit.change.isDeletion {
        late = state.tail?.takeCompletions() ?? []
        state.tail = nil
      }
      guard !state.isDeleted else { return ([], false) }
      for name in commit.taken.cursors { state.cursors.stored(name) }
      if isSynchronous {
        for block in commit.taken.blocks {
          unsafe block.forEachRun { unsafe enter($0, count: $1, at: $2, &state) }
        }
      }
      guard let ending = commit.taken.ending else { return (state.loopStates, false) }
      state.epoch.end(ending.ending)
      state.endedBy = ending.producer
      return (state.loopStates, true)
    }
    // The next commit removes records that newer ones have replaced.
    if storage?.hasNewestChanges ?? false { self.commit(within: StoreService.idleDelay) }
    if hasEnded { return notify(loopStates) }
    guard !commit.taken.blocks.isEmpty else { return }
    for loopState in loopStates {
      loopState.wakeProducers()
      if isSynchronous { loopState.wake() }
    }
  }

  /// Calls `body` on the writer's loop when all changes of the topic so far are on disk; at once if they are already, or the topic is in memory.
  ///
  /// - Parameters:
  ///   - name: the name of the cursor or group whose change must be stored; nil for the topic's records and row.
  ///   - body: gets the reason if that can't be stored.
  package func whenCommitted(of name: String? = nil, _ body: @escaping @Sendable (Fault?) -> Void) {
    let (fault, waits) = state.withLock { state -> (Fault?, Bool) in
      if name == nil, let fault = state.storeRejection, !state.isGone { return (fault, false) }
      return (nil, state.tail?.whenCommitted(UncommittedTail.Completion(name: name, body: body)) ?? false)
    }
    if waits { commit(within: .zero) } else { body(fault) }
  }

  /// Drops changes that the store refuses permanently. Nothing more is published to the topic until it is deleted, or the broker restarts with the stored
  /// records. On the writer's loop.
  ///
  /// - Returns: the bytes of records that no longer wait, and the callbacks that waited for them.
  package func quarantine(_ taken: UncommittedTail.Taken, _ fault: Fault) -> (
    bytes: Int, completions: [UncommittedTail.Completion]
  ) {
    let (dropped, loopStates) = state.withLock { state in
      state.storeRejection = fault
      return (state.tail?.discard(taken) ?? (0, taken.completions), state.loopStates)
    }
    notify(loopStates)
    return dropped
  }

  /// Why no changes of the topic can be stored now, because of the topic or of the store; nil if they can.
  package var storageRefusal: Fault? {
    guard let storage else { return nil }
    return state.withLock { $0.storeRejection } ?? storage.service.refusal
  }

  /// Requests a commit of the noted changes. From any loop.
  package func commit(within delay: Duration) {
    guard let storage, state.withLock({ $0.tail?.ask(within: delay) ?? false }) else { return }
    storage.service.enqueue(self, within: delay)
  }

  /// Notes that a group has a new state to store.
  package func groupMoved() { commit(within: StoreService.idleDelay) }
}

extension Topic.State {
  /// The offset that the next record gets. In a durable topic, some earlier records may not be in the log yet.
  package var nextOffset: UInt64 { tail?.nextOffset ?? epoch.log.head }
}

extension TopicSettings {
  /// The records of a durable topic that stay in memory, for subscribers that follow the head.
  var tailRetention: Retention {
    let buffer = flow == .free ? 0 : bufferBytes ?? 0
    let bytes = buffer.addingReportingOverflow(Self.tailBytes)
    return Retention(bytes: bytes.overflow ? .max : bytes.partialValue)
  }

  private static let tailBytes: UInt64 = 2 << 20
}
