import SluiceIO
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Single decisions of a group. ``GroupModelTests`` combines them at random.
struct GroupStateTests {
  private typealias Assignment = GroupState.Assignment

  private let start = MonotonicTime(nanoseconds: 0)

  private func group(_ rules: GroupState.Rules = .init(isExplicit: true), limit: Int = 100) -> GroupState {
    GroupState(rules, from: 0, limit: limit)
  }

  /// Distributes records with these keys up to `head`.
  private func distribute(
    _ group: inout GroupState, to head: UInt64, keys: [UInt64: UInt64] = [:]
  ) -> [GroupState.Assignment] {
    group.distribute(before: head, now: start)
    while group.wantsRecord(before: head) { group.offer(key: keys[group.frontier], now: start) }
    group._checkInvariants()
    return group.takeAssignments()
  }

  @Test func whoeverIsGivenARecordWaitsBehindTheOthers() {
    var group = group()
    let (a, b) = (group.join(), group.join())
    group.setRoom(2, of: b)
    group.setRoom(5, of: a)
    #expect(
      distribute(&group, to: 6) == [
        Assignment(member: b, first: 0, count: 1, delivery: 1),
        Assignment(member: a, first: 1, count: 1, delivery: 1),
        Assignment(member: b, first: 2, count: 1, delivery: 1),
        // From here on it is the only member.
        Assignment(member: a, first: 3, count: 3, delivery: 1),
      ])
  }

  @Test func aMemberThatIsAloneGetsRuns() {
    var group = group(.init())
    let member = group.join()
    group.setRoom(1_000, of: member)
    #expect(
      distribute(&group, to: 5_000) == [Assignment(member: member, first: 0, count: 1_000, delivery: 1)])
    #expect(group.floor == 0)
    group.sent(400, by: member, next: 400)
    #expect(group.floor == 400)
    #expect(group.outstanding == 600)
  }

  @Test func nothingIsLookedAtBeyondTheLimit() {
    var group = group(limit: 3)
    let member = group.join()
    group.setRoom(10, of: member)
    #expect(distribute(&group, to: 10) == [Assignment(member: member, first: 0, count: 3, delivery: 1)])
    group.settle(Settle(.acknowledge, delivery: 1, firstOffset: 1, count: 1), now: start)
    #expect(distribute(&group, to: 10) == [Assignment(member: member, first: 3, count: 1, delivery: 1)])
    #expect(group.floor == 0)
  }

  @Test func settlingWhatWasNeverDeliveredMeansNothing() {
    var group = group()
    let member = group.join()
    group.setRoom(1, of: member)
    let given = distribute(&group, to: 1)
    // It leaves before anything was sent to it.
    group.leave(member, unsent: given)
    let other = group.join()
    group.settle(Settle(.acknowledge, delivery: 0, firstOffset: 0, count: 1), now: start)
    group.setRoom(1, of: other)
    #expect(distribute(&group, to: 1) == [Assignment(member: other, first: 0, count: 1, delivery: 1)])
  }

  @Test func whatTheTopicHasDroppedIsDoneWithUnlessSomebodyHasIt() {
    var group = group(.init(isExplicit: true, isOrdered: true, looksAtRecords: true))
    let (a, b) = (group.join(), group.join())
    // 0 and 1 have the same key, so 1 waits; 2 returns; 3 stays assigned; 4 waits after it.
    group.setRoom(1, of: a)
    _ = distribute(&group, to: 1, keys: [0: 7])
    group.setRoom(2, of: b)
    _ = distribute(&group, to: 5, keys: [1: 7, 3: 8, 4: 8])
    group.settle(Settle(.retry, delivery: 1, firstOffset: 2, count: 1), now: start)
    #expect(group.frontier == 4)
    // 1 and 2 are lost, and also 4 and 5, which the group hasn't read.
    #expect(group.lost(before: 6) == 4)
    group._checkInvariants()
    #expect(group.outstanding == 2)
    #expect(!group.isDone(through: 6))
    group.settle(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 4), now: start)
    #expect(group.isDone(through: 6))
    group._checkInvariants()
    group.setRoom(1, of: a)
    #expect(
      distribute(&group, to: 7, keys: [6: 7]) == [Assignment(member: a, first: 6, count: 1, delivery: 1)])
  }

  @Test func aRecordThatIsLostBehindOneThatComesBackGoesWithIt() {
    var group = group(.init(isExplicit: true, isOrdered: true, looksAtRecords: true))
    let (a, b) = (group.join(), group.join())
    group.setRoom(1, of: a)
    _ = distribute(&group, to: 1, keys: [0: 7])
    group.setRoom(1, of: b)
    // 1 and 2 wait for 0; 3 has no key.
    _ = distribute(&group, to: 4, keys: [1: 7, 2: 7])
    #expect(group.lost(before: 2) == 1)
    group.settle(Settle(.retry, delivery: 1, firstOffset: 0, count: 1), now: start)
    #expect(group.lost(before: 2) == 1)
    group._checkInvariants()
    group.setRoom(1, of: b)
    #expect(distribute(&group, to: 4) == [Assignment(member: b, first: 2, count: 1, delivery: 1)])
  }

  @Test func aRetryWaitsWhileItsMemberGetsOthers() {
    var group = group(.init(isExplicit: true, retryBackoff: .init(first: 1_000, longest: 2_000)))
    let member = group.join()
    group.setRoom(1, of: member)
    _ = distribute(&group, to: 1)
    group.settle(Settle(.retry, delivery: 1, firstOffset: 0, count: 1, delay: 10_000), now: start)
    #expect(group.outstanding == 0 && group.delayed == 1)
    #expect(group.nextDeadline == start + .seconds(10))
    #expect(!group.hasMore(before: 1) && !group.isDone(through: 1))
    group.setRoom(1, of: member)
    #expect(distribute(&group, to: 2) == [Assignment(member: member, first: 1, count: 1, delivery: 1)])
    // By the group's backoff: one second after the first delivery.
    group.settle(Settle(.retry, delivery: 1, firstOffset: 1, count: 1), now: start)
    #expect(group.nextDeadline == start + .seconds(1))
    group.expire(now: start + .seconds(1))
    group.setRoom(1, of: member)
    #expect(distribute(&group, to: 2) == [Assignment(member: member, first: 1, count: 1, delivery: 2)])
    // An acknowledgement of the former delivery ends the wait of the other one.
    group.settle(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1), now: start)
    #expect(group.delayed == 0 && group.nextDeadline == nil && group.floor == 1)
    group._checkInvariants()
  }

  @Test func aKeyWaitsForTheRetryOfItsRecord() {
    var group = group(.init(isExplicit: true, isOrdered: true, looksAtRecords: true))
    let member = group.join()
    group.setRoom(3, of: member)
    _ = distribute(&group, to: 3, keys: [0: 7, 1: 7, 2: 8])
    group.settle(Settle(.retry, delivery: 1, firstOffset: 0, count: 1, delay: 10), now: start)
    group.settle(Settle(.acknowledge, delivery: 1, firstOffset: 2, count: 1), now: start)
    group.setRoom(3, of: member)
    #expect(distribute(&group, to: 3).isEmpty)
    group.expire(now: start + .milliseconds(10))
    #expect(distribute(&group, to: 3) == [Assignment(member: member, first: 0, count: 1, delivery: 2)])
    group.settle(Settle(.acknowledge, delivery: 2, firstOffset: 0, count: 1), now: start)
    #expect(distribute(&group, to: 3) == [Assignment(member: member, first: 1, count: 1, delivery: 1)])
  }

  @Test func settledDelaysUseNoMemory() {
    var group = group(limit: 10)
    let member = group.join()
    for offset in 0..<10_000 as Range<UInt64> {
      group.setRoom(1, of: member)
      _ = distribute(&group, to: offset + 1)
      group.settle(
        Settle(.retry, delivery: 1, firstOffset: offset, count: 1, delay: 3_600_000), now: start)
      group.settle(Settle(.acknowledge, delivery: 1, firstOffset: offset, count: 1), now: start)
    }
    #expect(group.delayed == 0 && group.nextDeadline == nil)
    #expect(group.memory < 16 << 10)
  }

  @Test func timeTakesBackWhatIsNotExtended() {
    var group = group(.init(isExplicit: true, deadline: .nanoseconds(10)))
    let member = group.join()
    group.setRoom(2, of: member)
    _ = distribute(&group, to: 2)
    #expect(group.nextDeadline == MonotonicTime(nanoseconds: 10))
    group.settle(
      Settle(.extend, delivery: 1, firstOffset: 0, count: 1), now: MonotonicTime(nanoseconds: 6))
    group.expire(now: MonotonicTime(nanoseconds: 10))
    #expect(group.holds(member, 0, delivery: 1))
    #expect(!group.holds(member, 1, delivery: 1))
    #expect(group.nextDeadline == MonotonicTime(nanoseconds: 16))
    group.expire(now: MonotonicTime(nanoseconds: 16))
    #expect(group.nextDeadline == nil)
    group.setRoom(2, of: member)
    #expect(distribute(&group, to: 2) == [Assignment(member: member, first: 0, count: 2, delivery: 2)])
  }
}
