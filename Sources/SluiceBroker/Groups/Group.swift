import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// A group of a topic: distributes the topic's records among its members, which may be on several loops.
///
/// The shell around ``GroupState``, under one short lock: what it assigns is put into its member's inbox, and the member is woken; the
/// records themselves are read from the log on the member's loop. Under the lock no member is called, and no lock but the log's is taken.
///
/// It exists for as long as its epoch of the topic, with members or without.
final class Group: Sendable {
  /// The most records that wait for a member whose connection doesn't take them: few, since other members could have had them.
  static let window: UInt64 = 256
  /// The most records that are looked at in one step.
  private static let lookedAt = 1024
  /// Bytes of records to be looked at that are read from storage at a time.
  private static let loaded = 256 << 10...256 << 10

  let name: String
  let settings: JoinGroup.Settings
  /// Of the hashes of keys.
  let seed: UInt64
  private let matcher: RecordMatcher?
  unowned let topic: Topic
  let epoch: TopicEpoch
  let core: Mutex<Core>
  /// Of the memory for what is kept besides records; nil where memory isn't watched.
  private let kept: KeptMemory.Share?
  /// Bytes of a group with these settings that has nothing under way.
  private let ownBytes: Int
  /// The group's position, for flow control.
  private let reported: Mutex<Reported>
  /// The first record that isn't done with, in a topic whose producers follow its subscribers.
  private let reportedFloor = Atomic(UInt64.max)
  /// Of a durable topic: whether it has changed since it was stored, and when that was.
  private let mustBeStored = Atomic(true)
  private let storedAt = Mutex<MonotonicTime?>(nil)
  /// The head that was seen last, with the lock held.
  private let seenHead = Atomic<UInt64>(0)

  /// - Parameters:
  ///   - start: where it begins.
  ///   - limit: the most records that may be under way at a time.
  convenience init(
    name: String, settings: JoinGroup.Settings, topic: Topic, epoch: TopicEpoch, from start: UInt64,
    limit: Int, now: MonotonicTime
  ) {
    self.init(
      name: name, settings: settings, seed: .random(in: .min ... .max), topic: topic, epoch: epoch,
      state: GroupState(settings.rules, from: start, limit: limit), now: now)
  }

  /// A group that is in this state, and has had no member since `now`.
  init(
    name: String, settings: JoinGroup.Settings, seed: UInt64, topic: Topic, epoch: TopicEpoch,
    state: GroupState, now: MonotonicTime
  ) {
    self.name = name
    self.settings = settings
    self.seed = seed
    matcher = RecordMatcher(unlessEmpty: settings.filter)
    self.topic = topic
    self.epoch = epoch
    let source = RecordSource(epoch, at: LogCursor(unplacedAt: state.frontier), portions: Self.loaded)
    core = Mutex(Core(state: state, source: source, idleSince: now))
    reported = Mutex(Reported(account: HoldAccount(since: now)))
    // The settings are there as they came, and once more as what is asked of records.
    let settingsBytes = JoinGroup(topic: "", group: name, settings: settings, grantedThrough: 0)
      .encoded(stream: 0).count
    ownBytes = KeptMemory.group + 4 * settingsBytes
    kept = topic.memory.map { [ownBytes] in
      KeptMemory.Share($0.kept, ownBytes + state.memory)
    }
  }

  // MARK: Members

  /// Adds a member; nothing is given to it before it asks. Returns the group's position; nil when it takes no members any more.
  func join(_ member: GroupMember) -> (next: UInt64, live: UInt64)? {
    let head = epoch.log.head
    return core.withLock { core in
      guard core.fault == nil else { return nil }
      member.number = core.state.join()
      while core.seats.count <= member.number { core.seats.append(nil) }
      core.seats[member.number] = Seat(member: member)
      core.members += 1
      if core.members == 1 {
        core.idleSince = nil
        core.liveOffset = head
        core.isLive = core.state.frontier >= head
      }
      // From here on nothing is dropped that the group has to read; its loopState protects everything until then.
      _ = report(core, now: member.connection.context.loop.now)
      return (core.state.frontier, max(head, core.state.frontier))
    }
  }

  /// Removes a member.
  ///
  /// - Returns: how many records were looked at for those that it had.
  func leave(_ member: GroupMember, unsent: [GroupState.Assignment], on loop: LoopContext) -> Int {
    var looked = 0
    step(on: loop) { core in
      guard let seat = core.seats[member.number] else { return }
      looked = core.state.outstanding > 0 ? core.state.entries : 0
      core.state.leave(member.number, unsent: unsent + seat.inbox)
      core.seats[member.number] = nil
      core.members -= 1
      if core.members == 0 { core.idleSince = loop.loop.now }
    }
    return looked
  }

  /// What a member is told when it asks for more.
  enum Answer {
    /// What it is to send next.
    case records([GroupState.Assignment])
    /// So many records were gone before a member got them. It must ask again.
    case missed(UInt64, next: UInt64)
    /// Nothing; it will be woken.
    case nothing
    /// Nothing any more: the topic is over, and all of it done with.
    case finished
    case fault(Fault)
  }

  /// A member has sent what it had, or as much as it could, and asks for more.
  ///
  /// - Parameters:
  ///   - sent: how many records it has sent since it asked last.
  ///   - inHand: what it still has to send. What it has lost meanwhile is taken out.
  ///   - available: how many records it may be sent in all.
  func exchange(
    _ member: GroupMember, sent: UInt64, inHand: inout [GroupState.Assignment], available: UInt64
  ) -> Answer {
    let number = member.number
    let rest = inHand
    let (answer, held) = step(on: member.connection.context) { core in
      guard core.seats[number] != nil else { return }
      if sent > 0 {
        core.state.sent(sent, by: number, next: (rest + core.seats[number]!.inbox).map(\.first).min())
      }
      let waiting = Self.records(in: rest) + Self.records(in: core.seats[number]!.inbox)
      let free = available > waiting ? available - waiting : 0
      core.seats[number]!.asked = free
      core.state.setRoom(waiting < Self.window ? min(free, Self.window - waiting) : 0, of: number)
    } then: { core -> (Answer, [GroupState.Assignment]) in
      guard core.seats[number] != nil else { return (.nothing, []) }
      if let fault = core.fault { return (.fault(fault), []) }
      var rest = rest
      if core.state.revocations != member.seenRevocations {
        member.seenRevocations = core.state.revocations
        rest = Self.held(rest, by: number, core.state)
        core.seats[number]!.inbox = Self.held(core.seats[number]!.inbox, by: number, core.state)
      }
      if core.missed > 0 { return (.missed(core.takeMissed(), next: core.state.frontier), rest) }
      let records = core.seats[number]!.inbox
      core.seats[number]!.inbox = []
      core.seats[number]!.isIdle = records.isEmpty
      if !records.isEmpty { return (.records(records), rest) }
      return (core.isFinished && rest.isEmpty ? .finished : .nothing, rest)
    }
    inHand = held
    return answer
  }

  private static func records(in runs: [GroupState.Assignment]) -> UInt64 {
    runs.reduce(0) { $0 + UInt64($1.count) }
  }

  /// What of these a member still has.
  private static func held(
    _ runs: [GroupState.Assignment], by member: Int, _ state: GroupState
  ) -> [GroupState.Assignment] {
    runs.flatMap { run in
      (run.first..<run.first + UInt64(run.count)).compactMap { offset in
        guard state.holds(member, offset, delivery: run.delivery) else { return nil }
        return GroupState.Assignment(member: member, first: offset, count: 1, delivery: run.delivery)
      }
    }
  }

  // MARK: Events

  /// The topic has more records, or is over.
  func advanced(on loop: LoopContext) {
    guard seenHead.load(ordering: .relaxed) != epoch.log.head || epoch.condition != .open else { return }
    step(on: loop) { _ in }
  }

  /// Settles records, of which `most` are looked at.
  ///
  /// - Returns: how many were looked at, and what is left of the frame.
  func settle(_ frame: Settle, atMost most: Int, on loop: LoopContext) -> (looked: Int, rest: Settle?) {
    var result: (looked: Int, rest: Settle?) = (0, nil)
    step(on: loop) { core in result = core.state.settle(frame, atMost: most, now: loop.loop.now) }
    return result
  }

  /// The topic has dropped records, some of which a member had in hand: these go with them.
  ///
  /// - Returns: how many records are lost that no member had been given.
  func lost(_ runs: [GroupState.Assignment], before oldest: UInt64, on loop: LoopContext) -> UInt64 {
    var lost: UInt64 = 0
    step(on: loop) { core in
      for run in runs { core.state.lost(run) }
      lost = core.state.lost(before: oldest)
    }
    return lost
  }

  /// Ends the group; every member is told.
  func close(_ fault: Fault, on loop: LoopContext) {
    step(on: loop) { core in
      core.fault = fault
      for number in core.seats.indices { core.wake(number) }
    }
  }

  private func timePassed(on loop: LoopContext) {
    step(on: loop) { core in
      core.isTimed = false
      core.state.expire(now: loop.loop.now)
    }
  }

  // MARK: A step

  /// Takes an event in, gives out what that makes possible, and does what follows without the lock. On `loop`.
  private func step<Result>(
    on loop: LoopContext, _ event: (inout Core) -> Void, then result: (inout Core) -> Result
  ) -> Result {
    let (result, todo) = core.withLock { core in
      core.state.allowed = kept?.isFull == true ? KeptMemory.leastGroupRecords : .max
      event(&core)
      if core.fault == nil { distribute(&core, on: loop) }
      let result = result(&core)
      kept?.set(to: ownBytes + core.state.memory)
      return (result, core.takeTodo(hasMoved: report(core, now: loop.loop.now)))
    }
    for member in todo.woken { member.loopState.call(member) }
    if let deadline = todo.deadline {
      // The event loop may outlive the group, but runs no timers once it has let go of its context.
      _ = loop.loop.schedule(at: deadline) { [weak self, unowned loop] in
        self?.timePassed(on: loop)
      }
    }
    if todo.goesOn {
      loop.loop.execute { [weak self, unowned loop] in
        self?.step(on: loop) { core in core.isLooking = false }
      }
    }
    if let request = todo.request { load(request, on: loop) }
    if todo.hasMoved { topic.readersMoved() }
    if todo.hasDeadLetters { sendDeadLetters(on: loop) }
    if topic.storage != nil, !mustBeStored.exchange(true, ordering: .acquiringAndReleasing) {
      topic.groupMoved()
    }
    return result
  }

  /// What a commit takes along of a group.
  enum Taken {
    case nothing
    /// It was stored only just now, and what has changed since can wait.
    case later
    case value([UInt8])
  }

  /// What is to be stored of it. On the writer's loop.
  func takeForCommit(now: MonotonicTime) -> Taken {
    guard mustBeStored.load(ordering: .acquiring) else { return .nothing }
    let isTime = storedAt.withLock { last in
      if let last, now < last + StoreService.idleDelay { return false }
      last = now
      return true
    }
    guard isTime else { return .later }
    mustBeStored.store(false, ordering: .releasing)
    return .value(stored.encoded())
  }

  /// Reads records from storage that must be looked at.
  private func load(_ request: StoreRequest, on loop: LoopContext) {
    request.load(of: topic.name, on: loop.loop) { [weak self, unowned loop] records in
      self?.step(on: loop) { core in
        core.source.take(records, for: request)
        // After a failure it is asked for again.
        core.source.abandon(request)
      }
    }
  }

  func step(on loop: LoopContext, _ event: (inout Core) -> Void) {
    step(on: loop, event) { _ in }
  }

  /// Gives out what can be given out. With the lock held.
  private func distribute(_ core: inout Core, on loop: LoopContext) {
    // Before the head is read: when this says that the topic is over, the head that is read next is final.
    let isOver = epoch.condition != .open
    let head = epoch.log.head
    seenHead.store(head, ordering: .relaxed)
    core.state.distribute(before: head, now: loop.loop.now)
    if core.state.rules.looksAtRecords { lookAtRecords(&core, before: head, on: loop) }
    core.handOver()
    if core.state.frontier >= core.liveOffset { core.isLive = true }
    if isOver, !core.isFinished, core.state.isDone(through: head) {
      core.isFinished = true
      for number in core.seats.indices { core.wake(number) }
    }
  }

  /// Gives out records that must be looked at first. With the lock held.
  private func lookAtRecords(_ core: inout Core, before head: UInt64, on loop: LoopContext) {
    var hint = SegmentHint()
    for _ in 0..<Self.lookedAt where core.state.mayPass(before: head) {
      core.source.move(to: core.state.frontier, hint: hint)
      switch core.source.next(demand: 1, bytes: 1, hint: &hint) {
      case .passed: continue
      case .caughtUp, .demandExhausted, .copies: return
      case .loading(let request):
        core.request = request
        return
      case .lagged: core.missed += core.state.lost(before: core.source.nextOffset)
      case .run(let slice, _):
        let (isWanted, key) = unsafe settings.look(at: slice.bytes, matcher, seed: seed)
        if !isWanted {
          core.state.pass()
        } else if core.state.wantsRecord(before: head) {
          core.state.offer(key: key, now: loop.loop.now)
        } else {
          return
        }
      }
    }
    // The rest is for another turn, so that the lock isn't held for long.
    core.mustGoOn = core.state.mayPass(before: head)
  }

  // MARK: Flow

  /// Whether a member with demand would get something.
  var hasMore: Bool {
    let head = epoch.log.head
    return core.withLock { $0.state.hasMore(before: head) }
  }

  /// The first record that no member was given yet.
  var shownFrontier: UInt64 { core.withLock { $0.state.frontier } }

  /// The group's position; nil without members. From any thread.
  var position: ReaderPosition? { reported.withLock { $0.account.position } }

  /// Counts the holds that the group's position has made. From any thread.
  func countHolds(now: MonotonicTime) {
    reported.withLock { $0.count(topic, now: now) }
  }

  /// What is shown of the group's limit with each member. From any thread.
  func showHolds(in info: inout TopicInfo.Subscription, open hold: HoldLog.Hold?, at now: MonotonicTime) {
    let account = reported.withLock { $0.account }
    account.show(in: &info, open: hold, at: now)
  }

  func isHolding(open hold: HoldLog.Hold?, at now: MonotonicTime) -> Bool {
    reported.withLock { $0.account.isHolding(open: hold, at: now) }
  }

  /// The first record that isn't done with, where that is of importance to producers. From any thread.
  var floor: UInt64? {
    topic.isPaced ? reportedFloor.load(ordering: .relaxed) : nil
  }

  /// Returns whether that has changed. With the lock held.
  private func report(_ core: Core, now: MonotonicTime) -> Bool {
    guard topic.isPaced else { return false }
    let position = core.position
    reportedFloor.store(core.state.floor, ordering: .relaxed)
    return reported.withLock { reported in
      guard reported.account.position != position else { return false }
      reported.count(topic, now: now)
      reported.account.position = position
      return true
    }
  }
}
