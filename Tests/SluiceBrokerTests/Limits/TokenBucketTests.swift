import SluiceIO
import SluiceSession
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

struct TokenBucketTests {
  private typealias Allowance = PublishingBudget.Allowance

  private func time(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func inTheLongRunNoMoreIsTakenThanComesIn() {
    var bucket = TokenBucket(perSecond: 1000, at: time(0))
    var taken: UInt64 = 0
    for millisecond in UInt64(0)..<10_000 { taken += bucket.take(50, at: time(millisecond)) }
    // Ten seconds' worth, and the initial savings.
    #expect((10_000...10_250).contains(taken))
  }

  @Test func whatIsSavedUpIsAQuarterOfASecond() {
    var bucket = TokenBucket(perSecond: 1000, at: time(0))
    #expect(bucket.room(at: time(0)) == 250)
    #expect(bucket.room(at: time(60_000)) == 250)
    // Each call takes half of the rest.
    #expect(bucket.take(1000, at: time(60_000)) == 125)
    #expect(bucket.take(1000, at: time(60_000)) == 62)
    bucket.giveBack(10_000)
    #expect(bucket.isFull)
  }

  @Test func debtsAreMadeUpFor() {
    var bucket = TokenBucket(perSecond: 1000, at: time(0))
    bucket.spend(1250)
    #expect(bucket.take(1, at: time(0)) == 0)
    #expect(bucket.take(1, at: time(1000)) == 0)
    #expect(bucket.wait(at: time(1000)) > .zero)
    #expect(bucket.take(1, at: time(1002)) == 1)
    // A clock that is slightly behind takes nothing away.
    #expect(bucket.room(at: time(900)) >= 0)
  }

  @Test func whoMayHaveOneASecondHasOneASecond() {
    var bucket = TokenBucket(perSecond: 1, at: time(0))
    #expect(bucket.take(10, at: time(0)) == 1)
    #expect(bucket.take(10, at: time(500)) == 0)
    #expect(bucket.wait(at: time(500)) == .milliseconds(500))
    #expect(bucket.take(10, at: time(1000)) == 1)
  }

  @Test func ofBothOrNeither() throws {
    let limiter = try #require(RateLimiter(records: 4, bytes: 1000, at: time(0)))
    #expect(
      limiter.take(Allowance(records: 10, bytes: 1000), at: time(0)) == Allowance(records: 1, bytes: 125))
    // There are no records left, so no bytes are taken either.
    #expect(limiter.take(Allowance(records: 10, bytes: 1000), at: time(0)) == nil)
    #expect(limiter.take(Allowance(records: 0, bytes: 1000), at: time(0)) == Allowance(records: 0, bytes: 62))
    limiter.giveBack(Allowance(records: 1, bytes: 187))
    #expect(limiter.isFull(at: time(0)))
    #expect(RateLimiter(records: 0, bytes: 0, at: time(0)) == nil)
  }

  @Test func anAccountIsKeptAsLongAsItOwes() throws {
    var limits = BrokerLimits()
    limits.connectionsPerIdentity = 2
    limits.identityPublishRecords = 100
    let accounts = IdentityAccounts(limits, metrics: BrokerMetrics())
    let first = try accounts.enter("ann", at: time(0))
    #expect(try accounts.enter("ann", at: time(0)) === first)
    #expect(throws: (any Error).self) { try accounts.enter("ann", at: time(0)) }
    #expect(try accounts.enter("bob", at: time(0)) !== first)
    // Connections without an identity are unlimited in number, each with its own account.
    for _ in 0..<5 { #expect(try accounts.enter("", at: time(0)) !== first) }
    first.publishing?.spend(records: 1000, bytes: 0)
    for _ in 0..<2 { accounts.leave(first, at: time(0)) }
    accounts.forget(at: time(0))
    #expect(try accounts.enter("ann", at: time(0)) === first)
    accounts.leave(first, at: time(0))
    accounts.forget(at: time(60_000))
    #expect(accounts.count == 1)
  }
}
