import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A group restored in another process behaves as if all its members had left.
@Suite struct GroupSnapshotTests {
  private static let kinds: [(String, GroupState.Rules)] = [
    ("explicit", GroupState.Rules(isExplicit: true)),
    (
      "explicit with limits",
      GroupState.Rules(isExplicit: true, deadline: .milliseconds(50), deliveries: 3, hasDeadLetters: true)
    ),
    ("dropping", GroupState.Rules(isExplicit: true, deadline: .milliseconds(20), deliveries: 2)),
    ("by key", GroupState.Rules(isExplicit: true, isOrdered: true, looksAtRecords: true)),
    (
      "by key with limits",
      GroupState.Rules(
        isExplicit: true, isOrdered: true, deadline: .milliseconds(40), deliveries: 2, hasDeadLetters: true,
        looksAtRecords: true)
    ),
    (
      "with a backoff",
      GroupState.Rules(isExplicit: true, deliveries: 4, retryBackoff: .init(first: 4, longest: 30))
    ),
    (
      "by key with a backoff",
      GroupState.Rules(
        isExplicit: true, isOrdered: true, deadline: .milliseconds(30),
        retryBackoff: .init(first: 4, longest: 30), looksAtRecords: true)
    ),
    (
      "by key, dropping",
      GroupState.Rules(isExplicit: true, isOrdered: true, deliveries: 2, looksAtRecords: true)
    ),
  ]

  /// A group, and the random events applied to it.
  private struct Play {
    var state: GroupState
    var now: UInt64 = 0
    var head: UInt64 = 0
    /// By offset.
    let keys: [UInt64?]
    var members: [Int] = []
    var given: [GroupState.Assignment] = []

    /// Applies one event, determined by the random numbers and the state. Returns the resulting assignments.
    mutating func step(_ random: inout TestSupport.SeededRandom, loses: Bool) -> [GroupState.Assignment] {
      now += UInt64.random(in: 0...8, using: &random) * 1_000_000
      let time = MonotonicTime(nanoseconds: now)
      let member = members.randomElement(using: &random)
      let some = given.randomElement(using: &random)
      switch Int.random(in: 0..<16, using: &random) {
      case 0..<4: head = min(head + UInt64.random(in: 1...6, using: &random), UInt64(keys.count))
      case 4 where members.count < 4: members.append(state.join())
      case 5:
        guard let member else { break }
        members.removeAll { $0 == member }
        state.leave(member, unsent: [])
      case 6..<10:
        if let member { state.setRoom(UInt64.random(in: 0...5, using: &random), of: member) }
      case 10..<14:
        guard let some else { break }
        state.settle(
          Settle(
            [.acknowledge, .acknowledge, .retry, .reject, .extend].randomElement(using: &random)!,
            delivery: some.delivery, firstOffset: some.first, count: some.count,
            delay: [0, 20, 90, Settle.byBackoff].randomElement(using: &random)!), now: time)
      case 14:
        if let record = state.nextDeadLetter() { state.deadLetterDone(record.offset, isKept: true) }
      case 15 where loses: _ = state.lost(before: UInt64.random(in: 0...head / 2, using: &random))
      default: break
      }
      state.expire(now: time)
      state.distribute(before: head, now: time)
      while state.wantsRecord(before: head) { state.offer(key: keys[Int(state.frontier)], now: time) }
      state._checkInvariants()
      let assignments = state.takeAssignments()
      given += assignments
      return assignments
    }

    /// The wall clock is some years ahead, and was set before it was restored.
    func clocks(setBy shift: Int64 = 0) -> ClockReading {
      ClockReading(
        now: MonotonicTime(nanoseconds: now), wallClock: 1_700_000_000_000 + Int64(now / 1_000_000) + shift)
    }

    mutating func leaveAll() {
      for member in members { state.leave(member, unsent: []) }
      members = []
    }

    /// Moves all dead letters to their topic. Returns their descriptions.
    mutating func buryAll() -> [String] {
      var dead: [String] = []
      while let record = state.nextDeadLetter() {
        dead.append("\(record)")
        state.deadLetterDone(record.offset, isKept: true)
      }
      state._checkInvariants()
      return dead.sorted()
    }
  }

  @Test(arguments: kinds.indices, [false, true])
  func aRestoredGroupDoesTheSame(_ kind: Int, loses: Bool) throws {
    let (name, rules) = Self.kinds[kind]
    var random = TestSupport.SeededRandom.printed(for: "\(#function) \(name)")
    for _ in 0..<80 {
      let keys = (0..<600).map { _ in
        Bool.random(using: &random) ? UInt64.random(in: 0...3, using: &random) : nil
      }
      // Records lost after an incomplete record count towards the limit only in the original.
      let limit = loses ? 10_000 : Int.random(in: 1...24, using: &random)
      var original = Play(state: GroupState(rules, from: 0, limit: limit), keys: keys)
      for _ in 0..<Int.random(in: 0...150, using: &random) { _ = original.step(&random, loses: loses) }

      let stored = StoredGroup(
        epoch: 1, seed: 2, settings: JoinGroup.Settings(),
        state: original.state.snapshot(at: original.clocks()))
      let snapshot = try StoredGroup(decoding: stored.encoded()).state
      #expect(snapshot == stored.state)
      var restored = original
      restored.state = GroupState(rules, restoring: snapshot, limit: limit, at: original.clocks())
      restored.members = []
      restored.state._checkInvariants()
      original.leaveAll()
      original.state._checkInvariants()
      #expect(original.buryAll() == restored.buryAll())
      #expect(
        original.state.snapshot(at: original.clocks()) == restored.state.snapshot(at: original.clocks()))
      var again = random
      for _ in 0..<150 {
        let expected = original.step(&random, loses: false)
        #expect(restored.step(&again, loses: false) == expected)
        #expect(restored.state.floor == original.state.floor)
        #expect(restored.state.nextDeadLetter()?.deliveries == original.state.nextDeadLetter()?.deliveries)
      }
      #expect(original.buryAll() == restored.buryAll())
    }
  }

  private static let clocks = ClockReading(now: MonotonicTime(nanoseconds: 0), wallClock: 40)

  /// A group whose record 0 waits for 5 s from the wall clock's 1,000,000 on.
  private func delayed() -> (rules: GroupState.Rules, snapshot: GroupState.Snapshot) {
    let clocks = ClockReading(now: MonotonicTime(nanoseconds: 7_000_000_000), wallClock: 1_000_000)
    let rules = GroupState.Rules(isExplicit: true)
    var group = GroupState(rules, from: 0, limit: 10)
    let member = group.join()
    group.setRoom(1, of: member)
    group.distribute(before: 1, now: clocks.now)
    group.settle(
      Settle(.retry, delivery: 1, firstOffset: 0, count: 1, delay: 5_000), now: clocks.now)
    return (rules, group.snapshot(at: clocks))
  }

  @Test(
    arguments: [(-1_000, 6_000), (0, 5_000), (3_000, 2_000), (5_000, nil), (90_000, nil)] as [(Int64, Int?)])
  func aDelayEndsWhenTheWallClockSaysSo(passed: Int64, left: Int?) {
    let (rules, snapshot) = delayed()
    #expect(snapshot.entries.map(\.retryAt) == [1_005_000])
    let clocks = ClockReading(now: MonotonicTime(nanoseconds: 11), wallClock: 1_000_000 + passed)
    let group = GroupState(rules, restoring: snapshot, limit: 10, at: clocks)
    group._checkInvariants()
    #expect(group.delayed == (left == nil ? 0 : 1))
    #expect(group.nextDeadline == left.map { clocks.now + .milliseconds($0) })
    #expect(group.hasMore(before: 1) == (left == nil))
  }

  @Test func noDelayIsLongerThanAnyCanBeWhateverTheClockSays() {
    let (rules, snapshot) = delayed()
    let clocks = ClockReading(now: MonotonicTime(nanoseconds: 0), wallClock: -(1 << 60))
    let group = GroupState(rules, restoring: snapshot, limit: 10, at: clocks)
    #expect(group.nextDeadline == clocks.now + .milliseconds(Int64(UInt32.max)))
  }

  @Test func whatMayNotHaveBeenSentIsGivenOutAgain() {
    var group = GroupState(.init(), from: 3, limit: 10)
    let (a, b) = (group.join(), group.join())
    group.setRoom(2, of: a)
    group.setRoom(2, of: b)
    group.distribute(before: 10, now: MonotonicTime(nanoseconds: 0))
    // 3 and 5 are with one member, 4 and 6 with the other, which has been sent both.
    group.sent(2, by: b, next: nil)
    #expect(group.snapshot(at: Self.clocks) == .init(frontier: 3))
    group.sent(2, by: a, next: nil)
    #expect(group.snapshot(at: Self.clocks) == .init(frontier: 7))
    let restored = GroupState(
      .init(), restoring: group.snapshot(at: Self.clocks), limit: 10, at: Self.clocks)
    #expect(restored.floor == 7)
  }

  @Test func aSnapshotIsCutWhereTheTopicEnds() {
    var snapshot = GroupState.Snapshot(frontier: 9, entries: [2, 5, 8].map { .init(offset: $0) })
    snapshot.cut(at: 20)
    #expect(snapshot.frontier == 9)
    snapshot.cut(at: 8)
    #expect(snapshot == .init(frontier: 8, entries: [.init(offset: 2), .init(offset: 5)]))
    snapshot.cut(at: 1)
    #expect(snapshot == .init(frontier: 1))
  }

  @Test func moreThanTheLimitIsRestoredAll() {
    let snapshot = GroupState.Snapshot(frontier: 9, entries: (0..<9).map { .init(offset: $0) })
    var group = GroupState(.init(isExplicit: true), restoring: snapshot, limit: 4, at: Self.clocks)
    group._checkInvariants()
    let member = group.join()
    group.setRoom(20, of: member)
    group.distribute(before: 20, now: MonotonicTime(nanoseconds: 0))
    group._checkInvariants()
    #expect(group.takeAssignments() == [.init(member: member, first: 0, count: 9, delivery: 1)])
  }

  @Test func whateverIsInASnapshotHoldsTogether() {
    var random = TestSupport.SeededRandom.printed()
    for _ in 0..<500 {
      let (_, rules) = Self.kinds.randomElement(using: &random)!
      let snapshot = GroupState.Snapshot(
        frontier: 40,
        entries: (0..<40 as Range<UInt64>).compactMap { offset -> GroupState.Snapshot.Entry? in
          guard Bool.random(using: &random) else { return nil }
          return GroupState.Snapshot.Entry(
            offset: offset, deliveries: UInt32.random(in: 0...4, using: &random),
            key: Bool.random(using: &random) ? UInt64.random(in: 0...3, using: &random) : nil,
            deadLetterReason: Int.random(in: 0..<4, using: &random) == 0 ? .deadline : nil,
            retryAt: Int.random(in: 0..<3, using: &random) == 0 ? .random(in: 1...80, using: &random) : nil)
        })
      var play = Play(
        state: GroupState(rules, restoring: snapshot, limit: 20, at: Self.clocks),
        keys: Array(repeating: 1, count: 99))
      play.state._checkInvariants()
      play.head = 60
      for _ in 0..<50 { _ = play.step(&random, loses: true) }
    }
  }
}
