import SluiceIO
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceTopics

/// The sequences of a group's dead letters.
@Suite struct GroupOutboxTests {
  private static let rules = {
    var rules = GroupState.Rules(isExplicit: true)
    rules.hasDeadLetters = true
    return rules
  }()
  private let now = MonotonicTime(nanoseconds: 0)
  private static let clocks = ClockReading(now: MonotonicTime(nanoseconds: 0), wallClock: 0)

  /// A group whose records 0 to 3 were rejected.
  private func group() -> GroupState {
    var group = GroupState(Self.rules, from: 0, limit: 10)
    let member = group.join()
    group.setRoom(10, of: member)
    group.distribute(before: 4, now: now)
    group.settle(Settle(.reject, delivery: 1, firstOffset: 0, count: 4), now: now)
    return group
  }

  private func settle(_ verdict: Settle.Verdict, _ offset: UInt64, _ group: inout GroupState) {
    group.settle(Settle(verdict, delivery: 1, firstOffset: offset, count: 1), now: now)
  }

  @Test func aRecordKeepsItsNumberUntilItIsKnownWhatBecameOfIt() {
    var group = group()
    #expect(group.nextDeadLetter()?.offset == 0)
    group.numberDeadLetter(0)
    // Without a number a member may still be done with it.
    settle(.acknowledge, 0, &group)
    settle(.acknowledge, 1, &group)
    #expect(group.nextDeadLetter()?.offset == 0)
    #expect(group.outbox == GroupOutbox(next: 0, offset: 0))
    group.deadLetterDone(0, isKept: true)
    #expect(group.outbox == GroupOutbox(next: 1))
    #expect(group.nextDeadLetter()?.offset == 2)
    // A record that was dropped isn't sent, and leaves its sequence to the next one.
    group.numberDeadLetter(2)
    group.deadLetterDone(2, isKept: false)
    #expect(group.outbox == GroupOutbox(next: 1))
    #expect(group.counts.deadLetters == 1 && group.counts.dropped == 1)
    group._checkInvariants()
  }

  @Test func theNextOwnerLearnsFromTheTopicWhetherTheRecordIsThere() {
    var group = group()
    group.numberDeadLetter(0)
    let snapshot = group.snapshot(at: Self.clocks)
    #expect(snapshot.outbox == GroupOutbox(next: 0, offset: 0))
    for isThere in [true, false] {
      var next = GroupState(Self.rules, restoring: snapshot, limit: 10, at: Self.clocks)
      next._checkInvariants()
      #expect(next.nextDeadLetter()?.offset == 0)
      next.deadLettersKept(before: isThere ? 1 : 0)
      #expect(next.counts.deadLetters == (isThere ? 1 : 0))
      #expect(next.nextDeadLetter()?.offset == (isThere ? 1 : 0))
      #expect(next.outbox == (isThere ? GroupOutbox(next: 1) : GroupOutbox(next: 0, offset: 0)))
    }
  }

  @Test func aNumberOfARecordThatTheTopicHasLostIsNotUsedBeforeItIsKnownToBeFree() {
    var group = group()
    group.numberDeadLetter(0)
    var snapshot = group.snapshot(at: Self.clocks)
    snapshot.cut(at: 0)
    #expect(snapshot.outbox == GroupOutbox(next: 0))
    var next = GroupState(Self.rules, restoring: snapshot, limit: 10, at: Self.clocks)
    next.deadLettersKept(before: 1)
    #expect(next.outbox == GroupOutbox(next: 1))
    #expect(next.counts.deadLetters == 0)
  }

  @Test func itIsStored() throws {
    let group = group()
    for outbox in [GroupOutbox(), GroupOutbox(next: 7), GroupOutbox(next: 7, offset: 3)] {
      var state = group.snapshot(at: Self.clocks)
      state.outbox = outbox
      let stored = StoredGroup(epoch: 1, seed: 2, settings: JoinGroup.Settings(), state: state)
      let bytes = stored.encoded()
      // A group without sequences has the stored form of versions that don't support them.
      #expect(bytes.first == (outbox == GroupOutbox() ? 1 : 2))
      #expect(try StoredGroup(decoding: bytes) == stored)
      // Tools that don't open the store can read the group's position.
      let position = try StoredPosition(StoredState(.group, key: StoredValue.key("g"), value: bytes))
      #expect(position?.nextOffset == 4 && position?.epoch == 1)
      for length in 0..<bytes.count {
        #expect(throws: (any Error).self) { try StoredGroup(decoding: Array(bytes[..<length])) }
      }
    }
    var state = group.snapshot(at: Self.clocks)
    state.outbox = GroupOutbox(next: 7, offset: 9)
    let stored = StoredGroup(epoch: 1, seed: 2, settings: JoinGroup.Settings(), state: state)
    #expect(throws: (any Error).self) { try StoredGroup(decoding: stored.encoded()) }
  }
}
