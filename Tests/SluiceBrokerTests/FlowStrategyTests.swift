import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The grants to producers, given the positions of the subscriptions. Records have 10 bytes each.
struct FlowStrategyTests {
  private func situation(head: UInt64, unreadFrom: UInt64? = nil, kept: UInt64 = 0) -> FlowSituation {
    FlowSituation(
      head: head, unreadFrom: unreadFrom, keptBytes: kept * 10, bytes: { $0 < head ? (head - $0) * 10 : 0 })
  }

  private func readers(_ all: [(next: UInt64, available: UInt64, isLive: Bool)]) -> ReaderPositions {
    all.reduce(into: ReaderPositions()) {
      $0.add(nextOffset: $1.next, available: $1.available, isLive: $1.isLive)
    }
  }

  private func buffer(
    _ records: UInt64, bytes: UInt64 = 1000, _ withoutSubscribers: TopicSettings.WhenAlone = .buffer
  ) -> FlowBuffer {
    FlowBuffer(records: records, bytes: bytes, withoutSubscribers: withoutSubscribers)
  }

  @Test func freeProducersAreNeverHeld() {
    #expect(FreeFlow().limit(readers([(0, 0, true)]), situation(head: 1_000_000)) == .unlimited)
    #expect(FreeFlow().keepFrom(readers([(0, 0, true)]), unreadFrom: nil) == nil)
  }

  // MARK: Lossless

  @Test func withoutABufferDemandIsPassedOnExactly() {
    let flow = LosslessFlow(buffer: buffer(0))
    for demand: UInt64 in [0, 1, 7] {
      #expect(
        flow.limit(readers([(20, demand, true)]), situation(head: 20))
          == (demand == 0 ? .none : .ahead(records: demand, bytes: 1000)))
    }
  }

  @Test func theSlowestCounts() {
    let flow = LosslessFlow(buffer: buffer(3))
    let all = readers([(20, 100, true), (18, 5, true), (20, .max, true)])
    // The demand reaches to 18 + 5, plus a buffer of 3, and the head is 20; the slowest subscription has 2 unread records of 10 bytes.
    #expect(flow.limit(all, situation(head: 20)) == .ahead(records: 6, bytes: 980))
    #expect(flow.keepFrom(all, unreadFrom: nil) == 18)
  }

  @Test func aFullBufferHoldsEverybody() {
    let flow = LosslessFlow(buffer: buffer(3))
    #expect(flow.limit(readers([(10, 0, true)]), situation(head: 12)) == .ahead(records: 1, bytes: 980))
    #expect(flow.limit(readers([(10, 0, true)]), situation(head: 13)) == .none)
    #expect(flow.limit(readers([(10, 0, true)]), situation(head: 90)) == .none)
    // The limit of bytes applies as well, whatever the demand.
    let narrow = LosslessFlow(buffer: buffer(3, bytes: 30))
    #expect(narrow.limit(readers([(10, .max, true)]), situation(head: 13)) == .none)
  }

  @Test func aBufferWithoutBytesGrantsARecordAtATime() {
    let flow = LosslessFlow(buffer: buffer(3, bytes: 0))
    #expect(flow.limit(readers([(20, 7, true)]), situation(head: 20)) == .ahead(records: 10, bytes: 1))
    #expect(flow.limit(readers([(19, 7, true)]), situation(head: 20)) == .none)
    #expect(
      flow.limit(readers([(0, 0, false)]), situation(head: 20, kept: 20)) == .ahead(records: 3, bytes: 1))
    let fastest = FastestFlow(buffer: buffer(0, bytes: 0))
    #expect(fastest.limit(readers([(20, 7, true)]), situation(head: 20)) == .ahead(records: 7, bytes: 1))
    let alone = LosslessFlow(buffer: buffer(5, bytes: 0, .buffer))
    #expect(
      alone.limit(ReaderPositions(), situation(head: 10, unreadFrom: 10)) == .ahead(records: 5, bytes: 1))
  }

  @Test func newestRecordsKeptBeyondTheLimitsCountTowardsTheBuffer() {
    let flow = LosslessFlow(buffer: buffer(3, bytes: 50))
    var reading = ReaderPositions()
    reading.add(nextOffset: .max, available: 0, isLive: false)
    reading.add(readingNewestFrom: 7)
    #expect(reading.readsNewestFrom == 7)
    // It needs nothing of the log, and doesn't block producers.
    #expect(flow.keepFrom(reading, unreadFrom: nil) == .max)
    var situation = situation(head: 1_000_000)
    situation.lapsedBytes = 49
    #expect(flow.limit(reading, situation) == .ahead(records: 3, bytes: 50))
    situation.lapsedBytes = 50
    #expect(flow.limit(reading, situation) == .none)
    // The lowest position counts.
    var other = ReaderPositions()
    other.add(readingNewestFrom: 5)
    other.merge(reading)
    #expect(other.readsNewestFrom == 5)
  }

  @Test func whoReplaysHoldsNobodyWhileTheLogKeepsItAnyway() {
    let flow = LosslessFlow(buffer: buffer(3, bytes: 50))
    let replaying = readers([(0, 0, false)])
    #expect(flow.limit(replaying, situation(head: 20, kept: 20)) == .ahead(records: 3, bytes: 50))
    #expect(flow.limit(replaying, situation(head: 24, kept: 20)) == .ahead(records: 3, bytes: 50))
    // Records retained for it fill the buffer.
    #expect(flow.limit(replaying, situation(head: 25, kept: 20)) == .none)
    #expect(flow.keepFrom(replaying, unreadFrom: nil) == 0)
  }

  @Test func theLimitThatBindsTellsWhichSubscriptionsMakeIt() {
    let flow = LosslessFlow(buffer: buffer(3, bytes: 50))
    func position(_ next: UInt64, _ available: UInt64, isLive: Bool = true) -> ReaderPosition {
      ReaderPosition(nextOffset: next, available: available, isLive: isLive)
    }
    // The subscription with the least demand leaves room for 8 more; the other one has read none of the records in the buffer.
    let all = readers([(20, 5, true), (15, .max, true)])
    let bound = flow.bound(all, situation(head: 20, kept: 20))
    #expect(bound.limit == .none)
    #expect(bound.binding == FlowBinding(nextOffset: 15))
    #expect(bound.binding?.limit(of: position(20, 5)) == nil)
    #expect(bound.binding?.limit(of: position(15, .max)) == .buffer)
    #expect(bound.binding?.limit(of: position(15, .max, isLive: false)) == nil)
    let stopped = flow.bound(readers([(16, 1, true), (19, .max, true)]), situation(head: 20, kept: 20))
    #expect(stopped.binding == FlowBinding(askedThrough: 17))
    #expect(stopped.binding?.limit(of: position(16, 1)) == .demand)
    // Records that the log retains for a replaying subscription.
    let replaying = flow.bound(readers([(0, 0, false)]), situation(head: 25, kept: 20)).binding
    #expect(replaying == FlowBinding(oldest: 0))
    #expect(replaying?.limit(of: position(0, 0, isLive: false)) == .replay)
    #expect(replaying?.limit(of: position(0, .max)) == .buffer)
    #expect(flow.bound(all, situation(head: 18, kept: 20)).binding == nil)
    let fastest = FastestFlow(buffer: buffer(0))
    #expect(
      fastest.bound(readers([(20, 0, true), (2, 1, true)]), situation(head: 20)).binding
        == FlowBinding(askedThrough: 20))
    #expect(flow.bound(ReaderPositions(), situation(head: 90, unreadFrom: 0)).binding == nil)
    var group = position(7, 0)
    (group.isGroup, group.oldest) = (true, 3)
    #expect(FlowBinding(askedThrough: 7).limit(of: group) == .groupDemand)
    #expect(FlowBinding(nextOffset: 7).limit(of: group) == .groupBuffer)
    group.isLive = false
    #expect(FlowBinding(oldest: 3).limit(of: group) == .groupReplay)
    #expect(FlowBinding(oldest: 7).limit(of: group) == nil)
  }

  @Test func unlimitedDemandNeverOverflows() {
    let flow = LosslessFlow(buffer: buffer(.max))
    #expect(
      flow.limit(readers([(.max - 1, .max, true)]), situation(head: .max - 1))
        == .ahead(records: 1, bytes: 1000))
  }

  // MARK: Without subscribers

  @Test func aloneProducersDoAsTheyAreTold() {
    let none = ReaderPositions()
    #expect(LosslessFlow(buffer: buffer(5, .hold)).limit(none, situation(head: 0, unreadFrom: 0)) == .none)
    #expect(
      LosslessFlow(buffer: buffer(5, .drop)).limit(none, situation(head: 900, unreadFrom: 0))
        == .ahead(records: 5, bytes: 1000))
    let buffering = LosslessFlow(buffer: buffer(5, .buffer))
    #expect(buffering.limit(none, situation(head: 12, unreadFrom: 10)) == .ahead(records: 3, bytes: 980))
    #expect(buffering.limit(none, situation(head: 15, unreadFrom: 10)) == .none)
    #expect(buffering.keepFrom(none, unreadFrom: 10) == 10)
    #expect(LosslessFlow(buffer: buffer(5, .hold)).keepFrom(none, unreadFrom: 10) == nil)
  }

  // MARK: Fastest

  @Test func theQuickestCounts() {
    let flow = FastestFlow(buffer: buffer(3))
    let all = readers([(20, 100, true), (2, 1, true)])
    #expect(flow.limit(all, situation(head: 20)) == .ahead(records: 103, bytes: 1000))
    #expect(flow.keepFrom(all, unreadFrom: nil) == nil)
  }
}
