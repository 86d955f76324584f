import SluiceIO
import Testing

@Suite struct SocketAddressTests {
  @Test(arguments: [
    ("127.0.0.1:7420", SocketAddress.host("127.0.0.1", port: 7420)),
    ("localhost:0", .host("localhost", port: 0)),
    ("broker.example.org:65535", .host("broker.example.org", port: 65_535)),
    ("[::1]:7420", .host("::1", port: 7420)),
    ("[fe80::1%eth0]:1", .host("fe80::1%eth0", port: 1)),
    ("tls://broker.example.org:7420", .tls("broker.example.org", port: 7420)),
    ("tls://[::1]:7420", .tls("::1", port: 7420)),
    ("unix:/run/sluice.socket", .unix("/run/sluice.socket")),
    ("unix:relative:with:colons", .unix("relative:with:colons")),
    ("ws://localhost:80", .door(.webSocket, "localhost", port: 80, isSecure: false)),
    ("wss://[::1]:443", .door(.webSocket, "::1", port: 443, isSecure: true)),
    ("http://host:0", .door(.http, "host", port: 0, isSecure: false)),
    ("https://host:1", .door(.http, "host", port: 1, isSecure: true)),
    ("mqtt://host:1883", .door(.mqtt, "host", port: 1883, isSecure: false)),
    ("mqtts://host:8883", .door(.mqtt, "host", port: 8883, isSecure: true)),
  ])
  func readsWhatItWrites(text: String, address: SocketAddress) throws {
    #expect(try SocketAddress(parsing: text) == address)
    #expect(address.description == text)
  }

  @Test(arguments: [
    ("", "no port"),
    ("localhost", "write HOST:PORT, for example localhost:7420"),
    (":7420", "write 0.0.0.0:7420"),
    ("localhost:", "a port is a number"),
    ("localhost:65536", "not '65536'"),
    ("localhost:-1", "not '-1'"),
    ("localhost:+1", "not '+1'"),
    ("localhost:７", "not '７'"),
    ("::1:7420", "an IPv6 address needs brackets"),
    ("[::1]", "write [::1]:PORT"),
    ("[::1", "']' is missing"),
    ("[localhost]:1", "only an IPv6 address stands in brackets"),
    ("local host:1", "spaces"),
    ("tls://::1:1", "needs brackets"),
    ("tls://host", "there is no port"),
    ("ftp://host:1", "needs brackets"),
    ("host/path:1", "'/'"),
    ("unix:", "no path"),
    ("unix:" + String(repeating: "x", count: 108), "107 bytes at most, this one has 108"),
  ])
  func saysWhatIsWrong(text: String, part: String) {
    let error = #expect(throws: SocketAddressError.self) { try SocketAddress(parsing: text) }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
    #expect(error?.description.hasPrefix("'\(text)'") == true)
  }
}

@Suite struct ConnectionPlacementTests {
  @Test(arguments: [
    (ConnectionPlacement.leastLoaded, [0, 0, 0], 0),
    (.leastLoaded, [2, 1, 1], 1),
    (.leastLoaded, [3, 2, 1], 2),
    (.filling(upTo: 2), [0, 0], 0),
    (.filling(upTo: 2), [1, 0], 0),
    (.filling(upTo: 2), [2, 1], 1),
    (.filling(upTo: 2), [3, 2], 1),
    (.filling(upTo: 0), [1, 1], 0),
  ])
  func choosesTheLoop(placement: ConnectionPlacement, loads: [Int], index: Int) {
    #expect(placement.choose(from: loads) == index)
  }
}

@Suite struct MonotonicTimeTests {
  @Test func additionSaturatesAtBothEnds() {
    let time = MonotonicTime(nanoseconds: 10)
    #expect(time + .nanoseconds(-11) == MonotonicTime(nanoseconds: 0))
    #expect(MonotonicTime(nanoseconds: .max - 1) + .seconds(1) == MonotonicTime(nanoseconds: .max))
    #expect(time + .seconds(Int64.max) == MonotonicTime(nanoseconds: 10 + UInt64(Int64.max)))
  }

  @Test func differencesHaveASign() {
    let early = MonotonicTime(nanoseconds: 10)
    let late = MonotonicTime(nanoseconds: 25)
    #expect(late - early == .nanoseconds(15))
    #expect(early - late == .nanoseconds(-15))
  }
}
