import Foundation
import SluiceClientFoundation
import Testing

/// Times of records, and what Foundation makes of them.
@Suite struct TimestampTests {
  private let time = Timestamp(millisecondsSince1970: 1_770_091_506_789)

  @Test func aTimeIsADateAndBack() {
    #expect(Date(time).timeIntervalSince1970 == 1_770_091_506.789)
    for milliseconds in [0, -1, 1, 1_770_091_506_789, -62_135_596_800_000] as [Int64] {
      let time = Timestamp(millisecondsSince1970: milliseconds)
      #expect(Timestamp(Date(time)) == time)
    }
    #expect(Timestamp(Date(timeIntervalSince1970: .infinity)).millisecondsSince1970 == .max)
    #expect(Timestamp(Date(timeIntervalSince1970: -1e30)).millisecondsSince1970 == .min)
  }

  @Test func durationsLieBetweenTimes() {
    let later = time + .milliseconds(1_500)
    #expect(later > time && later - time == .milliseconds(1_500) && time - later == .milliseconds(-1_500))
    #expect(later - .milliseconds(1_500) == time)
    #expect(time + .nanoseconds(999_999) == time)
    #expect(time + .seconds(Int64.max) == Timestamp(millisecondsSince1970: .max))
    #expect(time - .seconds(Int64.max) < Timestamp(millisecondsSince1970: 0))
  }
}
