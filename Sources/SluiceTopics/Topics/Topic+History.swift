import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Handles clients that know more of a durable topic than the store contains: the store was replaced by a backup or a copy.
extension Topic {
  /// For how long after the last such client a break in the topic's history is reported.
  private static let reported = Duration.seconds(3_600)
  /// The least time between two log lines about one topic.
  private static let reportInterval = Duration.seconds(60)

  /// Compares a client's knowledge with the topic's history. Called before the client attaches; from any loop.
  ///
  /// A client proves that the store went back if it is ahead of an epoch that the broker found in its store, or knows an epoch that isn't in the store. The
  /// epoch then continues under a new number, because a backup may contain other records under the former number than the topic will. Streams that were
  /// opened under the former number end, and clients reopen them at their present position. No record is lost. This happens at most once for each topic while
  /// the broker runs, since no client can be ahead of an epoch that the broker itself has begun.
  package func compare(_ known: KnownHistory, on loop: TopicLoop) {
    guard let storage, known.epoch != 0 else { return }
    let now = loop.loop.now
    let (isProof, loopStates, isNews): (Bool, [TopicLoopState], HistoryBreak?) = state.withLock { state in
      let former = state.epoch.number
      let isProof = wentBack(known, state)
      if isProof { continueEpoch(as: loop.registry.epochs.next(), &state) }
      let loopStates = isProof ? state.loopStates : []
      // A compact topic's epoch continues none: its clients start over.
      let agreed =
        state.epoch.continuing(known.epoch, at: known.nextOffset)
        ?? (isProof && known.epoch == former ? state.epoch.log.head : nil)
      // A client of an unknown epoch starts over: its topic may just as well have been deleted and recreated.
      guard let agreed, agreed < known.nextOffset else { return (isProof, loopStates, nil) }
      let last = state.historyBreak
      let found = HistoryBreak(from: agreed, before: known.nextOffset, time: now)
      state.historyBreak = found
      let isNews = last.map { now - $0.time >= Self.reportInterval } ?? true
      return (isProof, loopStates, isProof || isNews ? found : nil)
    }
    if let isNews {
      storage.service.report(.wentBack(topic: name, from: isNews.from, known: isNews.before))
    }
    guard isProof else { return }
    saveEpoch()
    notify(loopStates)
    for loopState in loopStates { loopState.wakeProducers() }
  }

  /// The first offset of a producer's acknowledged records that the topic doesn't have; nil if it has all, or isn't durable.
  package func lost(of known: KnownHistory) -> UInt64? {
    let epoch = epoch
    guard isDurable, known.epoch != 0, known.epoch != epoch.number else { return nil }
    let agreed = epoch.continuing(known.epoch, at: known.nextOffset) ?? 0
    return agreed < known.nextOffset ? agreed : nil
  }

  /// Whether a client knows more than the store contains: later records of the present epoch, or another epoch. With the lock held.
  private func wentBack(_ known: KnownHistory, _ state: State) -> Bool {
    guard state.loadedHead != nil, state.departure == nil else { return false }
    guard known.epoch == state.epoch.number else {
      return state.epoch.continuing(known.epoch, at: known.nextOffset) == nil
    }
    return known.nextOffset > state.epoch.log.head
  }

  /// With the lock held.
  private func continueEpoch(as number: UInt64, _ state: inout State) {
    let head = state.epoch.log.head
    // Clients know records published since the broker started by the present number.
    state.epoch.continue(as: number, upTo: min(state.loadedHead ?? head, head), through: head)
    state.loadedHead = nil
    state.isEpochUnsaved = true
  }

  /// Stores the number of an epoch that the topic has begun, and keeps it from clients until it is on disk. Call it once the topic's store is written to.
  func saveEpoch() {
    state.withLock { state in
      state.isEpochUnsaved = true
      state.tail?.noteRow()
    }
    // A number that the store refuses stays unsaved: another node may own the topic by now, and doesn't know the number.
    whenCommitted { [weak self] fault in
      if fault == nil { self?.state.withLock { $0.isEpochUnsaved = false } }
    }
  }

  /// Whether the epoch's number isn't on disk yet: until it is, no client may get it.
  package var isEpochUnsaved: Bool { state.withLock { $0.isEpochUnsaved } }

  /// The last break in the topic's history, reported for a while.
  package func historyBreak(now: MonotonicTime) -> HistoryBreak? {
    state.withLock { $0.historyBreak }.flatMap { now - $0.time < Self.reported ? $0 : nil }
  }
}

extension Fault {
  /// The end of a stream that was opened under an earlier number of the topic's epoch.
  package static func epochContinued(_ topic: String) -> Fault {
    Fault(
      code: .topicMoved,
      message:
        "the store of topic \(topic) lost records, and another epoch continues the topic; open the stream again to continue there"
    )
  }
}
