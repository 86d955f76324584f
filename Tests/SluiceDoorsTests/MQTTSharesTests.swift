import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// How a session's demand is divided among its subscriptions.
@Suite struct MQTTSharesTests {
  private static func feeds(_ count: Int, _ shares: inout MQTTShares) -> [MQTTFeed] {
    (0..<count).map { number in
      let feed = MQTTFeed(.pattern, number: UInt16(number), stream: UInt32(number), granted: 0)
      shares.add(feed)
      return feed
    }
  }

  /// Divides this much demand, and returns how many feeds got a grant.
  private static func share(_ credit: Int, _ shares: inout MQTTShares) -> Int {
    guard shares.begin(credit) else { return 0 }
    var count = 0
    while let (feed, more) = shares.next() {
      feed.granted += UInt64(more)
      shares.note(feed)
      count += 1
    }
    return count
  }

  @Test func aMessageCostsTheSameWithVeryManySubscriptions() {
    var shares = MQTTShares()
    let feeds = Self.feeds(50_000, &shares)
    // Each gets at least one, for any demand.
    #expect(Self.share(1000, &shares) == 50_000)
    #expect(feeds.allSatisfy { $0.outstanding == 1 })
    #expect(shares.waitingCount == 0)
    for feed in [feeds[7], feeds[40_000]] {
      feed.delivered += 1
      shares.note(feed)
      #expect(shares.waitingCount == 1)
      #expect(Self.share(999, &shares) == 1)
      #expect(feed.outstanding == 1)
    }
  }

  @Test func partsAreEqualAndOneIsLeftForTheNext() {
    var shares = MQTTShares()
    let first = Self.feeds(2, &shares)
    #expect(Self.share(90, &shares) == 2)
    #expect(first.map(\.outstanding) == [30, 30])
    let later = MQTTFeed(.pattern, number: 3, stream: 3, granted: 0)
    shares.add(later)
    #expect(Self.share(90, &shares) == 1)
    #expect(later.outstanding == 22)
    // The unused demand of one feed is divided among those that get records.
    shares.remove(first[0])
    first[1].delivered += 30
    shares.note(first[1])
    #expect(Self.share(60, &shares) == 1)
    #expect(first[1].outstanding == 20)
  }

  @Test func withoutDemandFeedsWait() {
    var shares = MQTTShares()
    let feeds = Self.feeds(3, &shares)
    #expect(Self.share(0, &shares) == 0)
    #expect(shares.waitingCount == 3)
    #expect(Self.share(8, &shares) == 3)
    #expect(feeds.allSatisfy { $0.outstanding == 2 })
  }

  /// After any changes to feeds, none that can get records is left without demand.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func noFeedIsForgotten(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var shares = MQTTShares()
    var feeds = Self.feeds(5, &shares)
    for step in 0..<500 {
      let index = Int.random(in: 0..<max(feeds.count, 1), using: &random)
      switch random.next() % 6 {
      case 0:
        let feed = MQTTFeed(.pattern, number: 0, stream: UInt32(1000 + step), granted: 0)
        feeds.append(feed)
        shares.add(feed)
      case 1 where feeds.count > 1: shares.remove(feeds.remove(at: index))
      case 2:
        feeds[index].held += 1
        shares.note(feeds[index])
      case 3 where feeds[index].held > 0:
        feeds[index].held -= 1
        shares.note(feeds[index])
      default:
        let outstanding = feeds[index].outstanding
        feeds[index].delivered += UInt64(Int.random(in: 0...outstanding, using: &random))
        shares.note(feeds[index])
      }
      let credit = Int.random(in: 0...40, using: &random)
      _ = Self.share(credit, &shares)
      guard credit > 0 else { continue }
      #expect(feeds.allSatisfy { $0.outstanding > 0 || $0.held > 0 }, "step \(step)")
      #expect(shares.waitingCount == 0)
    }
  }
}
