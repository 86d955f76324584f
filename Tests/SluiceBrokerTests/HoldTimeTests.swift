import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Since when, and for which share of the last minutes, producers were blocked; with a scripted clock.
@Suite struct HoldTimeTests {
  private func at(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: UInt64((seconds * 1e9).rounded()))
  }

  @Test func nothingIsShownBeforeTheFirstPeriod() {
    let time = HoldTime()
    #expect(time.milliseconds(at: at(5)) == nil)
    #expect(time.lastMinute(at: at(5)) == 0 && time.lastFiveMinutes(at: at(5)) == 0)
  }

  @Test func anEpisodeGoesOnOverShortPauses() {
    var time = HoldTime()
    // Blocked for 0.9 of each second: the subscriber requests a little at a time.
    for tenth in stride(from: 100.0, to: 400.0, by: 1.0) { time.add(from: at(tenth), to: at(tenth + 0.9)) }
    #expect(time.milliseconds(at: at(399.95)) == 299_950)
    // The last pause may become a long one.
    #expect(time.milliseconds(at: at(400.9)) == 300_900)
    #expect(time.milliseconds(at: at(400.901)) == nil)
    time.add(from: at(401), to: at(402))
    #expect(time.milliseconds(at: at(402)) == 1000)
  }

  @Test func aPauseOfExactlyTheGraceDoesNotEndAnEpisode() {
    var time = HoldTime()
    time.add(from: at(10), to: at(11))
    time.add(from: at(12), to: at(13))
    #expect(time.milliseconds(at: at(13)) == 3000)
    time.add(from: at(14.000_000_001), to: at(15))
    #expect(time.milliseconds(at: at(15)) == 999)
  }

  @Test func overlapsAreCountedOnce() {
    var time = HoldTime()
    time.add(from: at(0), to: at(10))
    time.add(from: at(5), to: at(8))
    time.add(from: at(9), to: at(12))
    #expect(time.lastMinute(at: at(24)) == 500)
  }

  @Test func sharesAreOfTheLastMinuteAndOfTheLastFive() {
    var time = HoldTime()
    // Blocked for the first 280 seconds, and for half of the rest.
    time.add(from: at(0), to: at(280))
    #expect(time.lastMinute(at: at(280)) == 1000)
    for second in stride(from: 280.0, to: 340.0, by: 1) { time.add(from: at(second), to: at(second + 0.5)) }
    // The bucket from 340 has just started: the 14 before it count.
    #expect(time.lastMinute(at: at(340)) == 500)
    #expect(time.lastFiveMinutes(at: at(340)) == 899)
    // From 344: 56 s, including 4 empty ones.
    #expect(time.lastMinute(at: at(344)) == 464)
    #expect(time.lastMinute(at: at(400)) == 0)
    #expect(time.lastFiveMinutes(at: at(700)) == 0)
    // After a long rest the buckets are cleared.
    time.add(from: at(10_000), to: at(10_001))
    #expect(time.lastFiveMinutes(at: at(10_000 + 100)) == 3)
  }

  /// All periods, with the shares computed from their definition.
  private struct Model {
    var periods: [(start: UInt64, end: UInt64)] = []

    func share(_ buckets: UInt64, at now: UInt64) -> UInt16 {
      let length: UInt64 = 4_000_000_000
      let first = now / length - min(now / length, buckets - 1)
      let start = first * length
      guard now > start else { return 0 }
      let sum: UInt64 = periods.reduce(0) { sum, period in
        let (from, to) = (max(period.start, start), min(period.end, now))
        return sum + (to > from ? to - from : 0)
      }
      return UInt16((Double(sum) * 1000 / Double(now - start)).rounded())
    }

    func milliseconds(at now: UInt64) -> UInt64? {
      guard let last = periods.last, now - last.end <= 1_000_000_000 else { return nil }
      var start = last.start
      for period in periods.dropLast().reversed() {
        if start - period.end > 1_000_000_000 { break }
        start = period.start
      }
      return max((now - start) / 1_000_000, 1)
    }
  }

  @Test func sharesAndEpisodesAreThoseOfAllPeriods() {
    var random = TestSupport.SeededRandom.printed()
    for _ in 0..<200 {
      var (time, model) = (HoldTime(), Model())
      var now = UInt64.random(in: 0...1_000_000_000_000, using: &random)
      let longest: UInt64 = [2_000_000, 900_000_000, 1_100_000_000, 30_000_000_000, 400_000_000_000]
        .randomElement(using: &random)!
      for _ in 0..<60 {
        now += UInt64.random(in: 0...longest, using: &random)
        let end = now + UInt64.random(in: 1...longest, using: &random)
        time.add(from: MonotonicTime(nanoseconds: now), to: MonotonicTime(nanoseconds: end))
        model.periods.append((now, end))
        now = end
        let look = now + UInt64.random(in: 0...longest, using: &random)
        let shown = MonotonicTime(nanoseconds: look)
        #expect(time.milliseconds(at: shown) == model.milliseconds(at: look))
        // Halves may be rounded either way.
        #expect(abs(Int(time.lastMinute(at: shown)) - Int(model.share(15, at: look))) <= 1)
        #expect(abs(Int(time.lastFiveMinutes(at: shown)) - Int(model.share(75, at: look))) <= 1)
      }
    }
  }
}

/// Which periods count towards which subscription.
@Suite struct HoldLogTests {
  private func at(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  private func by(_ binding: FlowBinding?) -> HoldLog.Cause {
    HoldLog.Cause(reason: .subscribers, binding: binding)
  }

  private func position(_ next: UInt64, _ available: UInt64) -> ReaderPosition {
    ReaderPosition(nextOffset: next, available: available, isLive: true)
  }

  private let blank = TopicInfo.Subscription(
    connection: 1, client: "c", stream: 1, state: .live, nextOffset: 0, granted: 0, sent: 0)

  @Test func holdsAreCountedToThePositionsThatMakeThem() {
    var log = HoldLog()
    var (slow, quick) = (HoldAccount(since: at(0)), HoldAccount(since: at(0)))
    (slow.position, quick.position) = (position(3, 0), position(3, 5))
    let first = log.change(to: by(FlowBinding(askedThrough: 3)), at: at(1000))
    #expect(!first)
    var mark = HoldLog.Mark()
    let holds = log.holds(since: mark)
    mark = log.mark
    for now: UInt64 in [1500, 2000] {
      slow.count(holds, to: at(now))
      quick.count(holds, to: at(now))
    }
    var info = blank
    slow.show(in: &info, open: log.open, at: at(2000))
    #expect(info.holding == 1000 && info.limit == .demand && info.lastMinute == 500)
    info = blank
    quick.show(in: &info, open: log.open, at: at(2000))
    #expect(info == blank)
    // It requests more, which updates its position before producers continue.
    slow.position = position(3, 9)
    let wasLong = log.change(to: nil, at: at(2100))
    #expect(wasLong)
    let rest = log.holds(since: mark)
    #expect(rest.count == 1)
    slow.count(rest, to: at(2200))
    slow.show(in: &info, open: log.open, at: at(2500))
    #expect(info.holding == 1500 && info.limit == .demand && info.lastMinute == 400)
    // Another limit blocks producers now, so the former periods don't apply.
    _ = log.change(to: HoldLog.Cause(reason: .memory), at: at(2600))
    slow.show(in: &info, open: log.open, at: at(2600))
    #expect(info.holding == 0 && info.limit == .none && info.lastMinute == 385)
    #expect(log.holds(since: log.mark).count == 1)
  }

  @Test func eachReasonHasItsTimes() {
    var log = HoldLog()
    #expect(log.shown(at: at(0)).isEmpty)
    _ = log.change(to: by(nil), at: at(0))
    _ = log.change(to: HoldLog.Cause(reason: .storageBacklog), at: at(3000))
    #expect(
      log.shown(at: at(4000)) == [
        TopicInfo.Hold(reason: .subscribers, milliseconds: 0, lastMinute: 750, lastFiveMinutes: 750),
        TopicInfo.Hold(reason: .storageBacklog, milliseconds: 1000, lastMinute: 250, lastFiveMinutes: 250),
      ])
    _ = log.change(to: nil, at: at(4000))
    #expect(log.shown(at: at(4500)).map(\.milliseconds) == [0, 1500])
    #expect(log.shown(at: at(400_000)).isEmpty)
  }

  /// Records flow after that, and no short pause of a subscriber is the cause.
  @Test(arguments: [TopicInfo.Publication.WaitReason.notConnected, .storageFull, .storageFailed])
  func aReasonWithoutPausesIsOverWhenItEnds(reason: TopicInfo.Publication.WaitReason) {
    var log = HoldLog()
    _ = log.change(to: HoldLog.Cause(reason: reason), at: at(1000))
    #expect(log.shown(at: at(3000)).map(\.milliseconds) == [2000])
    _ = log.change(to: nil, at: at(3000))
    #expect(log.shown(at: at(3000)).map(\.milliseconds) == [0])
    #expect(log.shown(at: at(3100)).map(\.lastMinute) == [645])
  }

  @Test func aLogIsBounded() {
    var log = HoldLog()
    for number: UInt64 in 1...100 {
      _ = log.change(to: by(FlowBinding(nextOffset: number)), at: at(number))
      _ = log.change(to: nil, at: at(number))
    }
    #expect(log.holds.count == HoldLog.kept)
    #expect(log.holds(since: HoldLog.Mark()).count == HoldLog.kept)
    #expect(log.holds(since: log.mark).isEmpty)
  }

  @Test func aClockThatIsBehindMakesNoNegativePeriods() {
    var log = HoldLog()
    _ = log.change(to: by(FlowBinding(askedThrough: 1)), at: at(100))
    _ = log.change(to: nil, at: at(90))
    _ = log.change(to: by(FlowBinding(askedThrough: 1)), at: at(95))
    #expect(log.holds.allSatisfy { ($0.end ?? $0.start) >= $0.start })
    var account = HoldAccount(position: position(1, 0), since: at(110))
    account.count(log.holds, to: at(105))
    #expect(!account.isHolding(open: nil, at: at(120)))
    #expect(account.isHolding(open: log.open, at: at(120)))
  }
}
