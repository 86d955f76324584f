import SluiceIO
import SluiceLog
import SluiceWire

extension Group {
  struct Seat: Sendable {
    var member: GroupMember
    /// What it was given and hasn't taken up, in the order of giving.
    var inbox: [GroupState.Assignment] = []
    /// How many more records it has asked for than it was given.
    var asked: UInt64 = 0
    /// Whether it waits to be woken.
    var isIdle = false
  }

  /// The group's position when it was last reported, and how long that has limited producers. Has a lock of its own.
  struct Reported: Sendable {
    var account: HoldAccount
    /// Up to where the topic's holds are counted here.
    private var counted = HoldLog.Mark()

    init(account: HoldAccount) {
      self.account = account
    }

    mutating func count(_ topic: Topic, now: MonotonicTime) {
      account.count(topic.holds(since: &counted), to: now)
    }
  }

  /// What a group's lock protects.
  struct Core: Sendable {
    var state: GroupState
    /// By the members' numbers.
    var seats: [Seat?] = []
    var members = 0
    /// Since when there has been no member; nil while there are.
    var idleSince: MonotonicTime?
    /// Where records are looked at, if they are; and what of them has to be loaded.
    var source: RecordSource
    var request: StoreRequest?
    /// The head when the first of the members came: from there on, the group has caught up.
    var liveOffset: UInt64 = 0
    var isLive = false
    /// Records that were gone before a member got them, of which no member was told.
    var missed: UInt64 = 0
    /// Why there is nothing more to be had, if so.
    var fault: Fault?
    /// Set once everything of a topic that is over is done with.
    var isFinished = false
    /// Whether a loop has a timer for the next deadline.
    var isTimed = false
    /// Whether there is more to look at, and whether a loop goes on with it.
    var mustGoOn = false
    var isLooking = false
    var deadLetters = DeadLetterProgress()
    /// To be woken without the lock.
    private var woken: [GroupMember] = []

    init(state: GroupState, source: RecordSource, idleSince: MonotonicTime) {
      self.state = state
      self.source = source
      self.idleSince = idleSince
    }
  }

  /// Whether dead letters are being appended.
  struct DeadLetterProgress: Sendable {
    static let firstDelay = Duration.milliseconds(100)
    static let longestDelay = Duration.seconds(30)

    /// Whether a loop appends them, or will when the delay is over.
    var isUnderWay = false
    var delay = firstDelay
  }

  /// What is to be done without the lock after a step.
  struct Todo {
    var woken: [GroupMember]
    var deadline: MonotonicTime?
    var goesOn: Bool
    var hasDeadLetters: Bool
    var hasMoved: Bool
    /// Records to be read from storage, to be looked at.
    var request: StoreRequest?
  }
}

extension Group.Core {
  /// Puts what was given out into the inboxes.
  mutating func handOver() {
    for run in state.takeAssignments() {
      guard seats[run.member] != nil else { continue }
      seats[run.member]!.inbox.append(run)
      seats[run.member]!.asked -= min(UInt64(run.count), seats[run.member]!.asked)
      wake(run.member)
    }
  }

  /// Has a member woken, if it waits.
  mutating func wake(_ number: Int) {
    guard let seat = seats[number], seat.isIdle else { return }
    seats[number]!.isIdle = false
    woken.append(seat.member)
  }

  mutating func takeMissed() -> UInt64 {
    defer { missed = 0 }
    return missed
  }

  mutating func takeTodo(hasMoved: Bool) -> Group.Todo {
    var todo = Group.Todo(
      woken: woken, goesOn: mustGoOn && !isLooking,
      hasDeadLetters: !deadLetters.isUnderWay && fault == nil && state.nextDeadLetter() != nil,
      hasMoved: hasMoved, request: request.take())
    woken = []
    isLooking = isLooking || todo.goesOn
    mustGoOn = false
    deadLetters.isUnderWay = deadLetters.isUnderWay || todo.hasDeadLetters
    if !isTimed, let next = state.nextDeadline {
      isTimed = true
      todo.deadline = next
    }
    return todo
  }

  /// The group's position, for flow control. Nil without members: then it limits no producer.
  var position: ReaderPosition? {
    guard members > 0 else { return nil }
    var position = ReaderPosition(nextOffset: state.frontier, available: asked, isLive: isLive)
    position.oldest = state.floor
    position.isGroup = true
    return position
  }

  /// How many more records all members together have asked for than they were given; all ones for unlimited.
  var asked: UInt64 {
    seats.reduce(0) { sum, seat in
      let sum = sum.addingReportingOverflow(seat?.asked ?? 0)
      return sum.overflow ? .max : sum.partialValue
    }
  }
}
