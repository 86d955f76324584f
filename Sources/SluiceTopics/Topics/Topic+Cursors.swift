import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Durable cursors: named positions in the topic that outlive the subscriptions that move them.
extension Topic {
  /// The start of a subscription with a durable cursor, and its right to commit.
  package struct CursorUse {
    package var ticket: CursorTable.Ticket
    /// All records before this offset are committed.
    package var committed: UInt64
    package var cursor: LogCursor
    /// Records dropped between the requested start and the actual one.
    package var missed: UInt64
    /// Whether the store doesn't have the cursor yet.
    package var isNew: Bool
  }

  /// Begins a subscription with a durable cursor. The subscription that has used it so far is notified that the cursor was taken.
  ///
  /// A new subscription begins at the cursor's place, if the topic has a cursor of that name. A subscription that resumes in its epoch begins at the offset
  /// in the frame, unless the cursor was moved or deleted meanwhile.
  ///
  /// - Parameters:
  ///   - account: the account that a new cursor is charged to; nil for the broker's own.
  ///   - start: finds the place that a SUBSCRIBE without a cursor requests. A reader of nil means that the frame decides how the reader begins.
  /// - Throws: the reason why it can't begin; nothing has changed then.
  package func useCursor(
    _ frame: Subscribe, in epoch: TopicEpoch, _ holder: CursorTable.Holder, by account: KeptAccount? = nil,
    now: MonotonicTime,
    start: (Subscribe, TopicEpoch.Reader?) throws(WireError) -> (cursor: LogCursor, missed: UInt64)
  ) throws(WireError) -> CursorUse {
    try TopicName.validate(frame.cursor, as: "cursor")
    let (result, former): (Result<CursorUse, WireError>, CursorTable.FormerHolder?) = state.withLock {
      state in
      do throws(WireError) {
        if state.groups[frame.cursor] != nil { throw isGroup(frame.cursor) }
        let found = state.cursors.find(frame.cursor, now: now)
        if found == nil, frame.epoch == 0, let fault = state.storeRejection ?? storage?.service.refusal {
          // The cursor couldn't be stored, and its subscriber expects it to survive a restart.
          throw WireError(fault)
        }
        // Records aren't kept for a cursor: its place is no lower than the floor, unless its subscription resumes after a lost connection.
        let (cursor, missed) = try start(try placed(frame, found, in: epoch), frame.epoch == 0 ? .late : nil)
        var place = CursorTable.Place(epoch: epoch.number, nextOffset: cursor.nextOffset)
        // Records received before may still be committed.
        if frame.epoch != 0, let found {
          let committed =
            found.place.epoch == epoch.number
            ? found.place.nextOffset : epoch.continuing(found.place.epoch, at: found.place.nextOffset)
          if let committed { place.nextOffset = min(committed, place.nextOffset) }
        }
        let charge = found == nil ? try charge(forCursor: frame.cursor, by: account) : nil
        guard
          let use = state.cursors.use(
            frame.cursor, at: place, holder, charge: charge, besides: state.groups.count, now: now)
        else {
          throw tooManyCursors
        }
        state.tail?.note(cursor: frame.cursor)
        return (
          .success(
            CursorUse(
              ticket: use.ticket, committed: place.nextOffset, cursor: cursor, missed: missed,
              isNew: storage != nil && !state.cursors.isStored(frame.cursor))),
          use.former
        )
      } catch {
        return (.failure(error), nil)
      }
    }
    former?.notify()
    commitCursor()
    return try result.get()
  }

  /// Requests a commit of a durable cursor's change.
  private func commitCursor() { commit(within: StoreService.idleDelay) }

  /// The frame with its start resolved: the cursor's place, if there is one.
  private func placed(
    _ frame: Subscribe, _ found: CursorTable.Finding?, in epoch: TopicEpoch
  ) throws(WireError) -> Subscribe {
    guard frame.epoch == 0 else {
      let known = frame.epoch
      let frame = frame.translated(to: epoch)
      if frame.epoch != epoch.number { return frame }
      // A cursor that was created in a lost part of the topic's history is created again.
      if found == nil, known != epoch.number { return frame }
      let loss: CursorTable.Loss? = found.map { $0.isMoved ? .moved : nil } ?? .deleted
      if let loss {
        let fault = Fault(loss, ofCursor: frame.cursor, on: name)
        throw WireError(fault)
      }
      return frame
    }
    guard let found else { return frame }
    var frame = frame
    if found.place.epoch == epoch.number {
      frame.start = .offset(found.place.nextOffset)
    } else if let offset = epoch.continuing(found.place.epoch, at: found.place.nextOffset) {
      frame.start = .offset(offset)
    } else if frame.lag ?? settings.lag != .fail {
      // The subscriber has received no record of this epoch.
      frame.start = .offset(0)
    } else {
      throw WireError(
        .epochChanged,
        "topic \(name) was recreated since cursor \(frame.cursor) was used last; move it, or subscribe with lag policy skip"
      )
    }
    frame.epoch = epoch.number
    return frame
  }

  /// Commits a cursor: the subscriber has processed all records before the offset. From any loop.
  package func commit(_ ticket: CursorTable.Ticket, through offset: UInt64) {
    state.withLock { state in
      if let name = state.cursors.commit(ticket, through: offset) { state.tail?.note(cursor: name) }
    }
    commitCursor()
  }

  /// Ends a subscription's use of its cursor after a last commit.
  package func leaveCursor(_ ticket: CursorTable.Ticket, at offset: UInt64, now: MonotonicTime) {
    state.withLock { state in
      if let name = state.cursors.commit(ticket, through: offset) { state.tail?.note(cursor: name) }
      state.cursors.leave(ticket, now: now)
    }
    commitCursor()
  }

  /// Moves a durable cursor, or creates it at that place. A subscription that uses it is notified.
  ///
  /// - Parameters:
  ///   - account: the account that a new cursor is charged to; nil for the broker's own.
  ///   - wallClock: the present time, from which ages are measured.
  package func moveCursor(
    _ cursor: String, to position: StartPosition, by account: KeptAccount? = nil, now: MonotonicTime,
    wallClock: Int64
  ) throws(WireError) {
    try TopicName.validate(cursor, as: "cursor")
    let result: Result<CursorTable.Change?, WireError> = state.withLock { state in
      let charge: KeptAccount.Charge?
      do throws(WireError) {
        let isNew = state.cursors.find(cursor, now: now) == nil
        charge = isNew ? try self.charge(forCursor: cursor, by: account) : nil
      } catch {
        return .failure(error)
      }
      let start = state.epoch.cursor(at: position, now: wallClock).cursor
      state.tail?.note(cursor: cursor)
      let place = CursorTable.Place(epoch: state.epoch.number, nextOffset: start.nextOffset)
      return .success(
        state.cursors.move(cursor, to: place, charge: charge, besides: state.groups.count, now: now))
    }
    guard let change = try result.get() else { throw tooManyCursors }
    change.former?.notify()
    commitCursor()
  }

  /// Deletes a durable cursor. A subscription that uses it is notified.
  package func deleteCursor(_ cursor: String, now: MonotonicTime) throws(WireError) {
    let deleted = state.withLock { state in
      let change = state.cursors.delete(cursor, now: now)
      if change != nil { state.tail?.note(cursor: cursor) }
      return change
    }
    commitCursor()
    guard let change = deleted else {
      try TopicName.validate(cursor, as: "cursor")
      throw WireError(.unknownCursor, "topic \(name) has no durable cursor or group \(cursor)")
    }
    change.former?.notify()
  }

  /// Whether the topic has a durable cursor of that name. With the lock held.
  static func hasCursor(_ name: String, _ state: State, now: MonotonicTime) -> Bool {
    state.cursors.find(name, now: now) != nil
  }

  /// The number of durable cursors and groups together.
  package var cursorCount: Int { state.withLock { $0.cursors.count + $0.groups.count } }

  /// A page of the durable cursors and groups in byte order of their names, and whether there are more.
  package func cursors(after: String, limit: Int, now: MonotonicTime) -> (page: [CursorInfo], more: Bool) {
    let (cursors, epoch) = state.withLock { ($0.cursors.summaries(now: now), $0.epoch) }
    let bounds = ConsumerBounds(epoch)
    let all =
      groupInfos(now: now)
      + cursors.map { summary in
        CursorInfo(
          name: summary.name, kind: .cursor, epoch: summary.place.epoch,
          nextOffset: bounds.next(
            summary.place.nextOffset, in: summary.place.epoch, isUsed: summary.isUsed),
          end: bounds.head, members: summary.isUsed ? 1 : 0, outstanding: 0,
          idle: summary.isUsed ? 0 : max(summary.idle.clampedMilliseconds, 1))
      }
    return all.lazy.filter { after.isEmpty || NameSpan.precedes(after, $0.name) }
      .page(atMost: limit) { NameSpan.precedes($0.name, $1.name) }
  }

  private var tooManyCursors: WireError {
    WireError(
      .limitReached,
      "topic \(name) has as many durable cursors and groups as it may; delete some that aren't needed")
  }

  /// The charge for a new cursor; nil if memory isn't watched.
  private func charge(
    forCursor cursor: String, by account: KeptAccount?
  ) throws(WireError) -> KeptAccount.Charge? {
    try keeper(account)?.charge(CursorTable.bytes(of: cursor))
  }

  private func isGroup(_ cursor: String) -> WireError {
    WireError(.groupMismatch, "\(cursor) is a group of topic \(name), not a cursor; use another name")
  }
}

extension Fault {
  /// The error for a subscription that has lost its durable cursor.
  package init(_ loss: CursorTable.Loss, ofCursor cursor: String, on topic: String) {
    switch loss {
    case .taken:
      self.init(
        code: .cursorTaken,
        message:
          "another subscription to \(topic) was opened with cursor \(cursor), which ends this one")
    case .moved:
      self.init(
        code: .cursorMoved,
        message: "cursor \(cursor) of \(topic) was moved; subscribe again to continue at its new position")
    case .deleted:
      self.init(
        code: .cursorDeleted,
        message: "cursor \(cursor) of \(topic) was deleted; subscribe again to begin with a new one")
    }
  }
}
