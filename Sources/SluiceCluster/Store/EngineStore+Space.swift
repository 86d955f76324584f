import SluiceIO
import SluiceNATS
import SluiceStore

/// Checkpoints of a shard's topics, and freeing the space of earlier messages.
extension EngineStore {
  /// Writes checkpoints of all changed topics, followed by a front message. No commits are in progress.
  func beginCheckpoint() {
    mode = .checkpointing
    checkpoint = CheckpointWrite(
      checkpoints.dirty, topics, fence: fence.sequence, names, atMost: mostBytes)
    goOnWithCheckpoint()
  }

  private func goOnWithCheckpoint() {
    guard mode == .checkpointing else { return }
    guard let messages = checkpoint?.next(behind: pipeline.last) else { return checkpointed() }
    let expected = pipeline.last + UInt64(messages.count)
    let done: (Swift.Result<PublishAcknowledgement, NATSError>) -> Void = { [self] result in
      guard mode == .checkpointing else { return }
      switch result {
      case .success(let acknowledgement) where acknowledgement.sequence == expected:
        pipeline.learned(through: expected)
        goOnWithCheckpoint()
      case .success: lost(NATSError(.malformedAnswer, "a checkpoint has another sequence than expected"))
      case .failure(let error): lost(error)
      }
    }
    stream.commit(messages, done)
  }

  /// Completes the checkpoints: all are stored, the front last.
  private func checkpointed() {
    checkpoint = nil
    if options.flaw == .purgeBeyondFront {
      for id in topics.ids {
        stream.purge(names.changes(of: id), before: pipeline.last) { _ in }
      }
    }
    checkpoints.written(front: pipeline.last, at: loop.now)
    mode = .open
    purge()
    pump()
  }

  // MARK: Space

  func reclaim() throws(StoreError) -> Bool {
    purge()
    if space.isWaiting, !checkpoints.dirty.isEmpty {
      checkpoints.want()
      pump()
    }
    return false
  }

  private func purge() {
    guard mode == .open || mode == .resolving,
      let purge = space.next(below: checkpoints.front, checkpoints.dirty, topics)
    else {
      return
    }
    run(purge, purge.subjects(names)[...])
  }

  private func run(_ purge: EngineSpace.Purge, _ subjects: ArraySlice<String>) {
    guard let subject = subjects.first else {
      space.finish(purge, &topics)
      learnSize()
      return self.purge()
    }
    stream.purge(subject, before: purge.end) { [self] result in
      // A failed purge is retried later.
      guard case .success = result, mode != .fenced, mode != .closed else { return space.giveUp() }
      run(purge, subjects.dropFirst())
    }
  }

  func size() throws(StoreError) -> StoreSize? {
    learnSize()
    return StoreSize(files: bytes, reusable: 0, limit: options.limit.map { UInt64($0) })
  }

  private func learnSize() {
    stream.size { [weak self] result in
      if case .success(let bytes) = result { self?.bytes = bytes }
    }
  }
}
