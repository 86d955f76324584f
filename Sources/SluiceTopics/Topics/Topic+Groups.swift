import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// A topic's groups: created by their first members, kept without members, moved and deleted on request. From any loop.
extension Topic {
  /// Returns the group that a member requests, and creates it if necessary.
  ///
  /// - Parameters:
  ///   - account: the account that a new group is charged to; nil for the broker's own.
  ///   - buffered: the offset at which the first subscriber begins, if producers have buffered records without subscribers.
  /// - Throws: ``ErrorCode/groupMismatch``, or ``ErrorCode/limitReached``.
  package func group(
    for frame: JoinGroup, by account: KeptAccount? = nil, buffered: UInt64?, on loop: TopicLoop
  ) throws(WireError) -> Group {
    let limits = loop.registry.limits
    let result: Result<Group, WireError> = state.withLock { state in
      if let group = state.groups[frame.group] {
        guard group.settings == frame.settings else {
          return .failure(
            WireError(
              .groupMismatch,
              "group \(frame.group) of \(name) \(frame.settings.difference(to: group.settings)); ask for the same, or delete it"
            ))
        }
        return .success(group)
      }
      guard !Self.hasCursor(frame.group, state, now: loop.loop.now) else {
        return .failure(
          WireError(
            .groupMismatch,
            "\(frame.group) is a durable cursor of topic \(name), not a group; use another name"))
      }
      guard state.groups.count + state.cursors.count < limits.cursors else {
        return .failure(
          WireError(
            .limitReached,
            "topic \(name) has \(limits.cursors) cursors and groups, which is its limit; delete some"))
      }
      let kept: KeptAccount.Charge?
      do throws(WireError) {
        kept = try keeper(account)?.charge(Group.bytes(of: frame.group, frame.settings))
      } catch {
        return .failure(error)
      }
      var start = state.epoch.cursor(at: StartPosition(frame.start), now: loop.loop.wallClock).cursor
        .nextOffset
      if let buffered, buffered < start, frame.start == .replay || frame.start == .earliest {
        start = buffered
      }
      let group = Group(
        name: frame.group, settings: frame.settings, topic: self, epoch: state.epoch, from: start,
        limit: limits.groupRecords, kept: kept, now: loop.loop.now)
      state.groups[frame.group] = group
      state.tail?.note(madeGroup: frame.group)
      return .success(group)
    }
    groupMoved()
    return try result.get()
  }

  /// Descriptions of all groups, in no order.
  func groupInfos(now: MonotonicTime) -> [CursorInfo] {
    let (groups, epoch) = state.withLock { (Array($0.groups.values), $0.epoch) }
    let bounds = ConsumerBounds(epoch)
    return groups.map { $0.info(in: bounds, now: now) }
  }

  package func hasGroup(_ name: String) -> Bool {
    state.withLock { $0.groups[name] != nil }
  }

  /// Moves a group to another start, and discards the state of its outstanding records. Its members get ``ErrorCode/cursorMoved``.
  ///
  /// - Returns: false if there is no such group.
  package func moveGroup(_ name: String, to start: Subscribe.Start, on loop: TopicLoop)
    -> Bool
  {
    let old = state.withLock { state -> Group? in
      guard let old = state.groups[name] else { return nil }
      let start = state.epoch.cursor(at: StartPosition(start), now: loop.loop.wallClock).cursor.nextOffset
      state.groups[name] = Group(
        name: name, settings: old.settings, topic: self, epoch: state.epoch, from: start,
        limit: loop.registry.limits.groupRecords,
        kept: old.account?.take(Group.bytes(of: name, old.settings)), now: loop.loop.now)
      return old
    }
    guard let old else { return false }
    groupMoved()
    old.close(
      Fault(
        code: .cursorMoved,
        message: "group \(name) of \(self.name) was moved; join it again to continue at its new position"),
      on: loop)
    return true
  }

  /// Deletes a group. Its members get ``ErrorCode/cursorDeleted``.
  ///
  /// - Returns: false if there is no such group.
  package func deleteGroup(_ name: String, on loop: TopicLoop) -> Bool {
    let removed = state.withLock { state -> Group? in
      let group = state.groups.removeValue(forKey: name)
      if group != nil { state.tail?.note(deletedGroup: name) }
      return group
    }
    guard let group = removed else { return false }
    groupMoved()
    group.close(
      Fault(
        code: .cursorDeleted,
        message: "group \(name) of \(self.name) was deleted; join it again to make it anew"),
      on: loop)
    return true
  }

  package func storeGroup(_ group: Group, _ body: @escaping @Sendable (Fault?) -> Void) {
    let waits = state.withLock { state in
      guard state.groups[group.name] === group else { return false }
      state.tail?.noteGroup()
      return state.tail?.whenCommitted(UncommittedTail.Completion(name: group.name, body: body)) ?? false
    }
    if waits { commit(within: .zero) } else { body(nil) }
  }

  /// Deletes groups that have had no member for at least `time`.
  package func forgetGroups(idleFor time: Duration, now: MonotonicTime) {
    let groups = state.withLock { Array($0.groups.values) }
    for group in groups where group.isIdle(for: time, now: now) {
      // A member that joins at this moment is refused, and creates the group again.
      state.withLock { state in
        guard state.groups[group.name] === group else { return }
        state.groups[group.name] = nil
        state.tail?.note(deletedGroup: group.name)
      }
      groupMoved()
    }
  }
}
