import SluiceIO
import SluiceLog
import SluiceWire

extension Group {
  /// The answer to a member's request for more records.
  package enum Answer {
    /// The records to send next.
    case records([GroupState.Assignment])
    /// So many records were dropped before a member got them. The member must ask again.
    case missed(UInt64, next: UInt64)
    /// No records yet; the member will be woken.
    case nothing
    /// No more records: the topic has ended, and all its records are settled.
    case finished
    case fault(Fault)
  }

  /// Whether dead letters are being appended.
  package struct DeadLetterProgress: Sendable {
    static let firstDelay = Duration.milliseconds(100)
    static let longestDelay = Duration.seconds(30)

    /// Whether a loop appends them, or will after the delay.
    var isUnderWay = false
    /// Whether the group is attached to the dead-letter topic as a producer, if dead letters have sequences.
    var isOpen = false
    package var delay = firstDelay
  }

  /// The follow-up work of a step, to be done without the lock.
  struct Todo {
    package var woken: [any GroupParticipant]
    package var deadline: MonotonicTime?
    package var goesOn: Bool
    var hasDeadLetters: Bool
    var hasMoved: Bool
    /// Records to be read from storage and examined.
    package var request: StoreRequest?
  }

  private struct Seat: Sendable {
    var member: any GroupParticipant
    /// Assigned records that the member hasn't taken yet, in the order of assignment.
    var inbox: [GroupState.Assignment] = []
    /// How many records the member has requested beyond those assigned to it.
    var asked: UInt64 = 0
    /// Whether it waits to be woken.
    var isIdle = false
  }

  /// The state that a group's lock protects.
  package struct Core: Sendable {
    /// The most records that wait for a member whose connection accepts none: few, since other members could get them instead.
    private static let window: UInt64 = 256
    /// The most records that one step examines.
    private static let lookedAt = 1024

    package var state: GroupState
    /// Reads the records that are examined, and the request for those that must be loaded.
    package var source: RecordSource
    private var request: StoreRequest?
    package var deadLetters = DeadLetterProgress()
    /// By the members' numbers.
    private var seats: [Seat?] = []
    package private(set) var members = 0
    /// When the last member left; nil while there are members.
    private(set) var idleSince: MonotonicTime?
    /// The head when the first member joined: beyond it, the group has caught up.
    private var liveOffset: UInt64 = 0
    private var isLive = false
    /// Records that were dropped before a member got them, and that haven't been reported to a member.
    private var missed: UInt64 = 0
    /// The reason why the group delivers no more records; nil while it does.
    package private(set) var fault: Fault?
    /// Set once the topic has ended and all its records are settled.
    private var isFinished = false
    /// The timer of each loop that has one, and when it fires.
    private var timers: [ObjectIdentifier: (timer: TimerToken, time: MonotonicTime)] = [:]
    /// Whether records remain to be examined, and whether a loop is examining them.
    private var mustGoOn = false
    private var isLooking = false
    /// Members to be woken without the lock.
    private var woken: [any GroupParticipant] = []

    init(state: GroupState, source: RecordSource, idleSince: MonotonicTime) {
      self.state = state
      self.source = source
      self.idleSince = idleSince
    }
  }
}

// MARK: Members

extension Group.Core {
  /// Adds a member. Returns false if the group accepts no more members.
  ///
  /// - Parameters:
  ///   - floor: records before it were dropped while there was no member.
  ///   - head: the topic's head.
  package mutating func join(_ member: any GroupParticipant, from floor: UInt64, head: UInt64) -> Bool {
    guard fault == nil else { return false }
    member.number = state.join()
    while seats.count <= member.number { seats.append(nil) }
    seats[member.number] = Group.Seat(member: member)
    members += 1
    if members == 1 {
      idleSince = nil
      missed += state.lost(before: floor)
      liveOffset = head
      isLive = state.frontier >= head
    }
    return true
  }

  /// Removes a member. Returns the number of entries examined to find its records.
  package mutating func leave(_ number: Int, unsent: [GroupState.Assignment], now: MonotonicTime) -> Int {
    guard let seat = seats[number] else { return 0 }
    let looked = state.outstanding > 0 ? state.entries : 0
    state.leave(number, unsent: unsent + seat.inbox)
    seats[number] = nil
    members -= 1
    if members == 0 { idleSince = now }
    return looked
  }

  /// Handles a member's request for records, see ``Group/exchange(_:sent:inHand:available:)``. Removes records from `inHand` that the member has lost
  /// meanwhile.
  package mutating func ask(
    _ member: any GroupParticipant, sent: UInt64, inHand: inout [GroupState.Assignment], available: UInt64
  ) {
    let number = member.number
    guard seats[number] != nil else { return }
    // Records in hand may also have been settled meanwhile: after a take-over, a client acknowledges here the records that the former owner sent it.
    if !inHand.isEmpty && state.rules.isExplicit || state.revocations != member.seenRevocations {
      member.seenRevocations = state.revocations
      inHand = held(inHand, by: number)
      seats[number]!.inbox = held(seats[number]!.inbox, by: number)
    }
    let waits = inHand + seats[number]!.inbox
    if sent > 0 { state.sent(sent, by: number, next: waits.map(\.first).min()) }
    let waiting = waits.reduce(0) { $0 + UInt64($1.count) }
    let free = available > waiting ? available - waiting : 0
    seats[number]!.asked = free
    state.setRoom(waiting < Self.window ? min(free, Self.window - waiting) : 0, of: number)
  }

  /// Returns the answer to a member's request.
  package mutating func answer(_ member: any GroupParticipant, _ inHand: inout [GroupState.Assignment])
    -> Group.Answer
  {
    let number = member.number
    guard seats[number] != nil else {
      inHand = []
      return .nothing
    }
    if let fault {
      inHand = []
      return .fault(fault)
    }
    if missed > 0 {
      defer { missed = 0 }
      return .missed(missed, next: state.frontier)
    }
    let records = seats[number]!.inbox
    seats[number]!.inbox = []
    seats[number]!.isIdle = records.isEmpty
    if !records.isEmpty { return .records(records) }
    return isFinished && inHand.isEmpty ? .finished : .nothing
  }

  /// Returns the records of these runs that the member still holds.
  private func held(_ runs: [GroupState.Assignment], by member: Int) -> [GroupState.Assignment] {
    var held: [GroupState.Assignment] = []
    for run in runs {
      for offset in run.first..<run.first + UInt64(run.count)
      where state.holds(member, offset, delivery: run.delivery) {
        held.join(.init(member: member, first: offset, count: 1, delivery: run.delivery))
      }
    }
    return held
  }

  /// Ends the group.
  package mutating func close(_ fault: Fault) {
    self.fault = fault
    wakeAll()
  }

  private mutating func wakeAll() {
    for number in seats.indices { wake(number) }
  }

  /// Notes that a member must be woken, if it waits.
  private mutating func wake(_ number: Int) {
    guard let seat = seats[number], seat.isIdle else { return }
    seats[number]!.isIdle = false
    woken.append(seat.member)
  }
}

// MARK: Steps

extension Group.Core {
  /// Assigns all records before `head` that can be assigned.
  ///
  /// - Parameters:
  ///   - isOver: whether no more records follow.
  ///   - look: returns whether a record is for the group, and the hash of its key.
  mutating func distribute(
    before head: UInt64, isOver: Bool, now: MonotonicTime,
    look: (UnsafeRawBufferPointer) -> (isWanted: Bool, key: UInt64?)
  ) {
    guard fault == nil else { return }
    state.distribute(before: head, now: now)
    if state.rules.looksAtRecords { unsafe lookAtRecords(before: head, now: now, look) }
    for run in state.takeAssignments() where seats[run.member] != nil {
      seats[run.member]!.inbox.append(run)
      seats[run.member]!.asked -= min(UInt64(run.count), seats[run.member]!.asked)
      wake(run.member)
    }
    if state.frontier >= liveOffset { isLive = true }
    if isOver, !isFinished, state.isDone(through: head) {
      isFinished = true
      wakeAll()
    }
  }

  /// Assigns records that must be examined first.
  private mutating func lookAtRecords(
    before head: UInt64, now: MonotonicTime,
    _ look: (UnsafeRawBufferPointer) -> (isWanted: Bool, key: UInt64?)
  ) {
    guard state.mayPass(before: head) else { return }
    let hint = SegmentHint()
    for _ in 0..<Self.lookedAt where state.mayPass(before: head) {
      source.move(to: state.frontier, hint: hint)
      switch source.next(demand: 1, bytes: 1, hint: hint) {
      case .passed: continue
      case .caughtUp, .demandExhausted, .copies: return
      case .loading(let request):
        self.request = request
        return
      case .lagged: missed += state.lost(before: source.nextOffset)
      case .run(let slice, _):
        let (isWanted, key) = unsafe look(slice.bytes)
        if !isWanted {
          state.pass()
        } else if state.wantsRecord(before: head) {
          state.offer(key: key, now: now)
        } else {
          return
        }
      }
    }
    // The next turn examines the others, so that the lock is held only briefly.
    mustGoOn = state.mayPass(before: head)
  }

  /// Continues examining records on a loop.
  package mutating func goOn() { isLooking = false }

  /// A loop's timer has fired.
  mutating func expire(now: MonotonicTime, on loop: ObjectIdentifier) {
    timers[loop] = nil
    state.expire(now: now)
  }

  /// Sets a loop's timer. Returns its previous timer.
  mutating func setTimer(
    _ timer: TimerToken, at time: MonotonicTime, on loop: ObjectIdentifier
  ) -> TimerToken? {
    timers.updateValue((timer, time), forKey: loop)?.timer
  }

  /// Returns the work that follows from a step, and marks it as begun.
  mutating func takeTodo(hasMoved: Bool) -> Group.Todo {
    var todo = Group.Todo(
      woken: woken, goesOn: mustGoOn && !isLooking,
      hasDeadLetters: !deadLetters.isUnderWay && fault == nil && state.nextDeadLetter() != nil,
      hasMoved: hasMoved, request: request.take())
    woken = []
    isLooking = isLooking || todo.goesOn
    mustGoOn = false
    deadLetters.isUnderWay = deadLetters.isUnderWay || todo.hasDeadLetters
    if let next = state.nextDeadline, !timers.values.contains(where: { $0.time <= next }) {
      todo.deadline = next
    }
    return todo
  }

  /// The group's position for flow control; nil without members, since the group then limits no producer.
  package var position: ReaderPosition? {
    guard members > 0 else { return nil }
    // The records requested by all members beyond those assigned to them.
    let asked = seats.reduce(UInt64(0)) { sum, seat in
      let sum = sum.addingReportingOverflow(seat?.asked ?? 0)
      return sum.overflow ? .max : sum.partialValue
    }
    var position = ReaderPosition(nextOffset: state.frontier, available: asked, isLive: isLive)
    position.oldest = state.floor
    position.isGroup = true
    return position
  }
}
