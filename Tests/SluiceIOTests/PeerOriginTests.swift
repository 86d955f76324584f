import SluiceIO
import Testing

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

  @Test(arguments: [
    ("127.0.0.1", true), ("127.255.0.9", true), ("::1", true), ("::ffff:127.0.0.1", true),
    ("128.0.0.1", false),
    ("::2", false), ("::ffff:10.0.0.1", false), ("1::1", false), ("::1%lo", true),
  ])
  func loopbackAddressesAreThisMachines(host: String, isLoopback: Bool) {
    #expect(NumericAddress(host)?.isLoopback == isLoopback)
  }

  @Test(arguments: ["localhost", "127.1", "", "127.0.0.1 ", "example.org"])
  func namesAreNoNumbers(host: String) {
    #expect(NumericAddress(host) == nil)
    #expect(PeerOrigin(numeric: host) == nil)
  }

  @Test func ofNamesOnlyLocalhostIsThisMachine() {
    #expect(SocketAddress.host("LocalHost", port: 1).isOnThisMachine)
    #expect(SocketAddress.tls("localhost", port: 1).isOnThisMachine)
    #expect(SocketAddress.unix("/tmp/x").isOnThisMachine)
    #expect(!SocketAddress.host("localhost.example.org", port: 1).isOnThisMachine)
  }
}
