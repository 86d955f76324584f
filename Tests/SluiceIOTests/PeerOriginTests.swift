import SluiceIO
import Testing

@testable import SluiceBroker

struct PeerOriginTests {
  private func origin(_ host: String) -> PeerOrigin? { PeerOrigin(.host(host, port: 1)) }

  @Test func ofIPv6TheFirstHalfCounts() {
    #expect(origin("2001:db8:1:2::1") == origin("2001:db8:1:2:ffff::9"))
    #expect(origin("2001:db8:1:2::1") != origin("2001:db8:1:3::1"))
    #expect(origin("fe80::1%eth0") == origin("fe80::2"))
    #expect(origin("2001:db8:1:2::1")?.description == "2001:db8:1:2::/64")
  }

  @Test func ofIPv4AllOfItHoweverItIsWritten() {
    #expect(origin("10.0.0.1") != origin("10.0.0.2"))
    #expect(origin("::ffff:10.0.0.1") == origin("10.0.0.1"))
    #expect(PeerOrigin(.tls("10.0.0.1", port: 2)) == origin("10.0.0.1"))
    #expect(origin("10.0.0.1")?.description == "10.0.0.1")
  }

  @Test func namesAreThemselvesAndUnixSocketsNobody() {
    #expect(origin("left") != origin("right"))
    #expect(origin("left")?.description == "left")
    #expect(PeerOrigin(.unix("/tmp/x")) == nil)
  }

  @Test func whoLeavesMakesRoomAndLeavesNothing() {
    var counts = ConnectionCounts()
    let (left, right) = (origin("10.0.0.1"), origin("10.0.0.2"))
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
