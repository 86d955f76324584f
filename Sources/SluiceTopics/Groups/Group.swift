import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// A group of a topic: distributes the topic's records among its members, which may be on several loops.
///
/// Wraps ``GroupState`` in one short lock. The group puts the records that the state assigns into the member's inbox and wakes the member; the member's loop
/// reads the records themselves from the log. While the lock is held, no member is called, and no lock but the log's is taken.
///
/// The group exists as long as its epoch of the topic, with members or without.
package final class Group: Sendable {
  /// Bytes read from storage at a time, for records that must be examined.
  private static let loaded = 256 << 10...256 << 10

  package let name: String
  package let settings: JoinGroup.Settings
  /// The seed of the hashes of keys.
  let seed: UInt64
  private let matcher: RecordMatcher?
  package unowned let topic: any GroupTopic
  package let epoch: TopicEpoch
  package let core: Mutex<Core>
  /// The charge for the group's memory besides records; nil if memory isn't watched.
  private let kept: KeptAccount.Charge?
  /// Bytes of a group with these settings without outstanding records.
  private let ownBytes: Int
  /// For flow control.
  package let flow: GroupFlow
  /// For a durable topic: whether the group has changed since it was last stored, and when it was stored.
  private let mustBeStored = Atomic(true)
  private let storedAt = Mutex<MonotonicTime?>(nil)
  /// Whether the next commit stores the group, even if it was stored a short time ago.
  private let isUrgent = Atomic(false)
  /// The head that was read last, with the lock held.
  private let seenHead = Atomic<UInt64>(0)

  /// - Parameters:
  ///   - start: the offset of the first record to deliver.
  ///   - limit: the most records that may be outstanding at a time.
  ///   - kept: the charge for the group; nil to charge the broker's own account.
  convenience init(
    name: String, settings: JoinGroup.Settings, topic: any GroupTopic, epoch: TopicEpoch, from start: UInt64,
    limit: Int, kept: KeptAccount.Charge? = nil, now: MonotonicTime
  ) {
    self.init(
      name: name, settings: settings, seed: .random(in: .min ... .max), topic: topic, epoch: epoch,
      state: GroupState(settings.rules, from: start, limit: limit), kept: kept, now: now)
  }

  /// A group in this state that has had no member since `now`.
  init(
    name: String, settings: JoinGroup.Settings, seed: UInt64, topic: any GroupTopic, epoch: TopicEpoch,
    state: GroupState, kept: KeptAccount.Charge? = nil, now: MonotonicTime
  ) {
    self.name = name
    self.settings = settings
    self.seed = seed
    matcher = RecordMatcher(unlessEmpty: settings.filter)
    self.topic = topic
    self.epoch = epoch
    let source = RecordSource(epoch, at: LogCursor(unplacedAt: state.frontier), portions: Self.loaded)
    core = Mutex(Core(state: state, source: source, idleSince: now))
    flow = GroupFlow(topic, since: now)
    ownBytes = Self.bytes(of: name, settings)
    self.kept = kept ?? topic.memory?.accounts.broker.take(ownBytes)
    self.kept?.set(to: ownBytes + state.memory)
  }

  /// Bytes that a group with nothing outstanding keeps.
  static func bytes(of name: String, _ settings: JoinGroup.Settings) -> Int {
    // The settings are kept as received, and once more as the conditions on records.
    let encoded = JoinGroup(topic: "", group: name, settings: settings, grantedThrough: 0).encoded(stream: 0)
    return KeptMemory.group + 4 * encoded.count
  }

  /// The account that pays for the group; nil where memory isn't watched.
  var account: KeptAccount? { kept?.account }

  // MARK: Members

  /// Adds a member, which gets no records before it requests some. Returns the group's position; nil if the group accepts no more members.
  ///
  /// - Parameters:
  ///   - floor: the first member gets no record before this offset, even if the group hasn't delivered it yet.
  ///   - now: the present time.
  package func join(
    _ member: any GroupParticipant, from floor: UInt64, now: MonotonicTime
  ) -> (next: UInt64, live: UInt64)? {
    let head = epoch.log.head
    return core.withLock { core in
      guard core.join(member, from: min(floor, head), head: head) else { return nil }
      // From here on, no record is dropped that the group has yet to read; its loop state protects all of them until then.
      _ = flow.report(core, now: now)
      return (core.state.frontier, max(head, core.state.frontier))
    }
  }

  /// Removes a member.
  ///
  /// - Returns: the number of entries examined to find the member's records.
  package func leave(_ member: any GroupParticipant, unsent: [GroupState.Assignment], on loop: any GroupLoop)
    -> Int
  {
    var looked = 0
    step(on: loop) { core in looked = core.leave(member.number, unsent: unsent, now: loop.loop.now) }
    return looked
  }

  /// Handles a member's request for more records, after it has sent all that it had or as many as its connection accepts.
  ///
  /// - Parameters:
  ///   - sent: how many records the member has sent since its last request.
  ///   - inHand: the records that it has yet to send. Those that it lost meanwhile are removed.
  ///   - available: how many records it may be sent in all.
  package func exchange(
    _ member: any GroupParticipant, sent: UInt64, inHand: inout [GroupState.Assignment], available: UInt64,
    on loop: any GroupLoop
  ) -> Answer {
    var held = inHand
    defer { inHand = held }
    return step(on: loop) { core in
      core.ask(member, sent: sent, inHand: &held, available: available)
    } then: { core in
      core.answer(member, &held)
    }
  }

  // MARK: Events

  /// Reports the group's position, because the topic's producers now follow its subscribers.
  func reportPosition(now: MonotonicTime) {
    core.withLock { core in _ = flow.report(core, now: now) }
  }

  /// Handles new records of the topic, or its end.
  func advanced(on loop: any GroupLoop) {
    guard seenHead.load(ordering: .relaxed) != epoch.log.head || epoch.condition != .open else { return }
    step(on: loop) { _ in }
  }

  /// Settles records, and examines at most `most` of them.
  ///
  /// - Returns: the number examined, and the part of the frame that remains to be done; nil if none remains.
  package func settle(_ frame: Settle, atMost most: Int, on loop: any GroupLoop) -> (
    looked: Int, rest: Settle?
  ) {
    var result: (looked: Int, rest: Settle?) = (0, nil)
    step(on: loop) { core in result = core.state.settle(frame, atMost: most, now: loop.loop.now) }
    return result
  }

  /// Handles records that the topic has dropped. `runs` are those that a member had in hand; they are settled.
  ///
  /// - Returns: the number of lost records that had not been assigned to a member.
  package func lost(_ runs: [GroupState.Assignment], before oldest: UInt64, on loop: any GroupLoop) -> UInt64
  {
    var lost: UInt64 = 0
    step(on: loop) { core in
      for run in runs { core.state.lost(run) }
      lost = core.state.lost(before: oldest)
    }
    return lost
  }

  /// Ends the group with `fault`, and wakes all members.
  package func close(_ fault: Fault, on loop: any GroupLoop) {
    step(on: loop) { core in core.close(fault) }
  }

  // MARK: A step

  /// Applies an event, assigns the records that can now be assigned, and performs the follow-up work without the lock. On `loop`.
  private func step<Result>(
    on loop: any GroupLoop, _ event: (inout Core) -> Void, then result: (inout Core) -> Result
  ) -> Result {
    let (result, todo) = core.withLock { core in
      core.state.allowed = kept?.isFull == true ? KeptMemory.leastGroupRecords : .max
      event(&core)
      distribute(&core, on: loop)
      let result = result(&core)
      kept?.set(to: ownBytes + core.state.memory)
      return (result, core.takeTodo(hasMoved: flow.report(core, now: loop.loop.now)))
    }
    for member in todo.woken { member.call() }
    if let deadline = todo.deadline { wake(at: deadline, on: loop) }
    if todo.goesOn {
      loop.loop.execute { [weak self, unowned loop] in
        self?.step(on: loop) { core in core.goOn() }
      }
    }
    if let request = todo.request { load(request, on: loop) }
    if todo.hasMoved { topic.readersMoved() }
    if todo.hasDeadLetters { sendDeadLetters(on: loop) }
    if topic.isDurable, !mustBeStored.exchange(true, ordering: .acquiringAndReleasing) {
      topic.groupMoved()
    }
    return result
  }

  /// Has a loop's timer take back what time takes back. Each loop has one timer at most: an earlier deadline replaces it.
  private func wake(at deadline: MonotonicTime, on loop: any GroupLoop) {
    let key = ObjectIdentifier(loop.loop)
    // The event loop may outlive the group, but runs no timers once it has let go of its context.
    let timer = loop.loop.schedule(at: deadline) { [weak self, unowned loop] in
      self?.step(on: loop) { core in core.expire(now: loop.loop.now, on: key) }
    }
    if let former = core.withLock({ $0.setTimer(timer, at: deadline, on: key) }) { loop.loop.cancel(former) }
  }

  /// Reads records from storage that must be looked at.
  private func load(_ request: StoreRequest, on loop: any GroupLoop) {
    request.load(of: topic.name, on: loop.loop) { [weak self, unowned loop] records in
      self?.step(on: loop) { core in
        core.source.take(records, for: request)
        // After a failure, the next step requests the records again.
        core.source.abandon(request)
      }
    }
  }

  package func step(on loop: any GroupLoop, _ event: (inout Core) -> Void) {
    step(on: loop, event) { _ in }
  }

  /// Assigns all records that can be assigned. With the lock held.
  private func distribute(_ core: inout Core, on loop: any GroupLoop) {
    // Read before the head: if the condition isn't `open`, the head that is read next is final.
    let isOver = epoch.condition != .open
    let head = epoch.log.head
    seenHead.store(head, ordering: .relaxed)
    unsafe core.distribute(before: head, isOver: isOver, now: loop.loop.now) { items in
      unsafe settings.look(at: items, matcher, seed: seed)
    }
  }

  // MARK: Description

  /// Whether a member with demand would get something.
  package var hasMore: Bool {
    let head = epoch.log.head
    return core.withLock { $0.state.hasMore(before: head) }
  }

  /// The first record that hasn't been assigned to a member yet.
  package var shownFrontier: UInt64 { core.withLock { $0.state.frontier } }

  // MARK: Storage

  /// Restores a group without members. Discards the state of records at or beyond the log's head.
  ///
  ///
  /// - Parameters:
  ///   - limit: the most records that may be outstanding at a time.
  ///   - kept: the charge for the group; nil to charge the broker's own account.
  convenience init(
    name: String, restoring stored: StoredGroup, topic: any GroupTopic, epoch: TopicEpoch, limit: Int,
    kept: KeptAccount.Charge? = nil, at clocks: ClockReading
  ) {
    var snapshot = stored.state
    snapshot.cut(at: epoch.log.head)
    self.init(
      name: name, settings: stored.settings, seed: stored.seed, topic: topic, epoch: epoch,
      state: GroupState(stored.settings.rules, restoring: snapshot, limit: limit, at: clocks), kept: kept,
      now: clocks.now)
  }

  /// The group's state for storage. From any thread; takes time in proportion to the unsettled records.
  func stored(at clocks: ClockReading) -> StoredGroup {
    let snapshot = core.withLock { $0.state.snapshot(at: clocks) }
    return StoredGroup(epoch: epoch.number, seed: seed, settings: settings, state: snapshot)
  }

  /// The part of a commit that stores a group.
  package enum Taken {
    case nothing
    /// The group was stored only recently; later changes can wait.
    case later
    case value([UInt8])
  }

  /// Makes the next commit store the group's state.
  func storeSoon() { isUrgent.store(true, ordering: .releasing) }

  /// Returns the state that the next commit must store. On the writer's loop.
  package func takeForCommit(at clocks: ClockReading) -> Taken {
    let now = clocks.now
    guard mustBeStored.load(ordering: .acquiring) else { return .nothing }
    let isUrgent = isUrgent.exchange(false, ordering: .acquiringAndReleasing)
    let isTime = storedAt.withLock { last in
      if !isUrgent, let last, now < last + StoreService.idleDelay { return false }
      last = now
      return true
    }
    guard isTime else { return .later }
    mustBeStored.store(false, ordering: .releasing)
    return .value(stored(at: clocks).encoded())
  }
}
