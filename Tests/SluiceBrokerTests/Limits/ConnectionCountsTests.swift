import SluiceIO
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

struct ConnectionCountsTests {
  @Test func whoLeavesMakesRoomAndLeavesNothing() {
    var counts = ConnectionCounts()
    let (left, right) = (PeerOrigin(numeric: "10.0.0.1"), PeerOrigin(numeric: "10.0.0.2"))
    #expect(counts.add(from: left, atMost: 4, perOrigin: 2) == nil)
    #expect(counts.add(from: left, atMost: 4, perOrigin: 2) == nil)
    #expect(counts.add(from: left, atMost: 4, perOrigin: 2) == .perOrigin)
    #expect(counts.add(from: right, atMost: 4, perOrigin: 2) == nil)
    #expect(counts.add(from: nil, atMost: 4, perOrigin: 2) == nil)
    #expect(counts.add(from: nil, atMost: 4, perOrigin: 2) == .inAll)
    #expect(counts.total == 4 && counts.origins == 2)
    counts.remove(from: left)
    #expect(counts.add(from: left, atMost: 4, perOrigin: 2) == nil)
    for origin in [left, left, right, nil] { counts.remove(from: origin) }
    #expect(counts.total == 0 && counts.origins == 0)
  }
}
