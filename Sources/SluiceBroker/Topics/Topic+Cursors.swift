import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Durable cursors: places in the topic by name, which subscriptions move and leave behind.
extension Topic {
  /// Where a subscription with a durable cursor begins, and what it commits with.
  struct CursorUse {
    var ticket: CursorTable.Ticket
    /// The offset up to which everything is committed.
    var committed: UInt64
    var cursor: LogCursor
    /// Records between where it was to begin and where it does.
    var missed: UInt64
    /// A crash would leave nothing of it.
    var isNew: Bool
  }

  /// Begins a subscription with a durable cursor. Whoever has used it is told that it is taken.
  ///
  /// One that begins does so at the cursor's place, if there is one of that name. One that goes on in the epoch that it knows does so where it says; unless
  /// the cursor was put elsewhere or deleted meanwhile.
  ///
  /// - Parameter start: finds the place that a SUBSCRIBE without a cursor asks for.
  /// - Throws: why it can't begin; nothing has happened then.
  func useCursor(
    _ frame: Subscribe, in epoch: TopicEpoch, _ holder: CursorTable.Holder, now: MonotonicTime,
    start: (Subscribe) throws(WireError) -> (cursor: LogCursor, missed: UInt64)
  ) throws(WireError) -> CursorUse {
    try TopicName.validate(frame.cursor, as: "cursor")
    let (result, loser): (Result<CursorUse, WireError>, CursorTable.Loser?) = state.withLock { state in
      do throws(WireError) {
        if state.groups[frame.cursor] != nil { throw isGroup(frame.cursor) }
        let found = state.cursors.find(frame.cursor, now: now)
        if found == nil, frame.epoch == 0, let fault = state.storeRejection ?? storage?.service.refusal {
          // It would be gone with the broker, and its subscriber thinks otherwise.
          throw WireError(fault.code, fault.message)
        }
        let (cursor, missed) = try start(try placed(frame, found, in: epoch))
        var place = CursorTable.Place(epoch: epoch.number, nextOffset: cursor.nextOffset)
        // What was received before and isn't committed yet may still be.
        if frame.epoch != 0, let found {
          let committed =
            found.place.epoch == epoch.number
            ? found.place.nextOffset : epoch.continuing(found.place.epoch, at: found.place.nextOffset)
          if let committed { place.nextOffset = min(committed, place.nextOffset) }
        }
        guard
          let use = state.cursors.use(
            frame.cursor, at: place, holder, besides: state.groups.count, now: now)
        else {
          throw tooManyCursors
        }
        state.tail?.note(cursor: frame.cursor)
        return (
          .success(
            CursorUse(
              ticket: use.ticket, committed: place.nextOffset, cursor: cursor, missed: missed,
              isNew: storage != nil && !state.cursors.isStored(frame.cursor))),
          use.loser
        )
      } catch {
        return (.failure(error), nil)
      }
    }
    loser?.tell()
    cursorMoved()
    return try result.get()
  }

  /// A durable cursor stands elsewhere.
  private func cursorMoved() { commit(within: StoreService.idleDelay) }

  /// The frame with the start that is meant.
  private func placed(
    _ frame: Subscribe, _ found: CursorTable.Finding?, in epoch: TopicEpoch
  ) throws(WireError) -> Subscribe {
    guard frame.epoch == 0 else {
      let frame = frame.translated(to: epoch)
      if frame.epoch != epoch.number { return frame }
      let loss: CursorTable.Loss? = found.map { $0.isMoved ? .moved : nil } ?? .deleted
      if let loss {
        let fault = Fault(loss, ofCursor: frame.cursor, on: name)
        throw WireError(fault.code, fault.message)
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
      // All of this epoch is new to it.
      frame.start = .offset(0)
    } else {
      throw WireError(
        .epochChanged,
        "topic \(name) was started anew since cursor \(frame.cursor) was used last; move it, or subscribe with lag policy skip"
      )
    }
    // It was under way before: what is still there is its.
    frame.epoch = epoch.number
    return frame
  }

  /// Everything before that offset is dealt with. From any loop.
  func commit(_ ticket: CursorTable.Ticket, through offset: UInt64) {
    state.withLock { state in
      if let name = state.cursors.commit(ticket, through: offset) { state.tail?.note(cursor: name) }
    }
    cursorMoved()
  }

  /// The subscription with that ticket is over, and everything before the offset dealt with.
  func leaveCursor(_ ticket: CursorTable.Ticket, at offset: UInt64, now: MonotonicTime) {
    state.withLock { state in
      if let name = state.cursors.commit(ticket, through: offset) { state.tail?.note(cursor: name) }
      state.cursors.leave(ticket, now: now)
    }
    cursorMoved()
  }

  /// Puts a durable cursor elsewhere, or makes it there. Whoever uses it is told.
  ///
  /// - Parameter wallClock: at which ages are measured.
  func moveCursor(
    _ cursor: String, to position: StartPosition, now: MonotonicTime, wallClock: Int64
  ) throws(WireError) {
    try TopicName.validate(cursor, as: "cursor")
    let change: CursorTable.Change? = state.withLock { state in
      let start = state.epoch.cursor(at: position, now: wallClock, resuming: false).cursor
      state.tail?.note(cursor: cursor)
      let place = CursorTable.Place(epoch: state.epoch.number, nextOffset: start.nextOffset)
      return state.cursors.move(cursor, to: place, besides: state.groups.count, now: now)
    }
    guard let change else { throw tooManyCursors }
    change.loser?.tell()
    cursorMoved()
  }

  /// Forgets a durable cursor. Whoever uses it is told.
  func deleteCursor(_ cursor: String, now: MonotonicTime) throws(WireError) {
    let deleted = state.withLock { state in
      let change = state.cursors.delete(cursor, now: now)
      if change != nil { state.tail?.note(cursor: cursor) }
      return change
    }
    cursorMoved()
    guard let change = deleted else {
      try TopicName.validate(cursor, as: "cursor")
      throw WireError(.unknownCursor, "topic \(name) has no durable cursor or group \(cursor)")
    }
    change.loser?.tell()
  }

  /// Whether there is a durable cursor of that name. The lock is held.
  static func hasCursor(_ name: String, _ state: State, now: MonotonicTime) -> Bool {
    state.cursors.find(name, now: now) != nil
  }

  /// Durable cursors and groups, together.
  var cursorCount: Int { state.withLock { $0.cursors.count + $0.groups.count } }

  /// A page of the durable cursors and groups in byte order of their names, and whether there are more.
  func cursors(after: String, limit: Int, now: MonotonicTime) -> (page: [CursorInfo], more: Bool) {
    let (cursors, head) = state.withLock { ($0.cursors.summaries(now: now), $0.epoch.log.head) }
    let all =
      groupInfos(now: now)
      + cursors.map { summary in
        CursorInfo(
          name: summary.name, kind: .cursor, epoch: summary.place.epoch, nextOffset: summary.place.nextOffset,
          end: head, members: summary.isUsed ? 1 : 0, outstanding: 0,
          idle: summary.isUsed ? 0 : max(summary.idle.wholeMilliseconds, 1))
      }
    let found = all.filter { after.isEmpty || Self.precedes(after, $0.name) }
      .sorted { Self.precedes($0.name, $1.name) }
    return (Array(found.prefix(limit)), found.count > limit)
  }

  private static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }

  private var tooManyCursors: WireError {
    memory?.kept.refusal
      ?? WireError(
        .limitReached,
        "topic \(name) has as many durable cursors and groups as it may; delete some that aren't needed")
  }

  private func isGroup(_ cursor: String) -> WireError {
    WireError(.groupMismatch, "\(cursor) is a group of topic \(name), not a cursor; use another name")
  }
}

extension Fault {
  /// What a subscription is told whose durable cursor isn't its own any more.
  init(_ loss: CursorTable.Loss, ofCursor cursor: String, on topic: String) {
    switch loss {
    case .taken:
      self.init(
        code: .cursorTaken,
        message:
          "another subscription to \(topic) has been opened with cursor \(cursor); only the last one goes on")
    case .moved:
      self.init(
        code: .cursorMoved,
        message: "cursor \(cursor) of \(topic) was put elsewhere; subscribe again to go on there")
    case .deleted:
      self.init(
        code: .cursorDeleted,
        message: "cursor \(cursor) of \(topic) was deleted; subscribe again to begin with a new one")
    }
  }
}
