import TestSupport
import Testing

/// The limits of the admin listener as options of the program.
@Suite(.onItsOwnThread) struct AdminLimitOptionTests {
  private func broker(_ options: String...) throws -> (broker: BrokerProcess, address: String) {
    let broker = try BrokerProcess(options: ["--admin", "\(Loopback.freshHost()):0"] + options)
    return (broker, try #require(broker.adminAddress))
  }

  @Test func recordsAreShownAsFarAsThatIsAllowed() throws {
    let (broker, address) = try broker("--admin-list-records", "2", "--admin-payload-bytes", "4B")
    #expect(try broker.sluice("pub", "t", "one", "abcdefgh", "three", "--quiet").waitForExit() == .code(0))
    #expect(try RawHTTP.get(address, "/api/topics/t/records?count=3").status == 400)
    let text = try RawHTTP.get(address, "/api/topics/t/records").text
    #expect(text.contains("abcd") && !text.contains("abcde") && !text.contains("one"), "\(text)")
  }

  @Test func nobodyMayWatch() throws {
    let (broker, address) = try broker("--admin-watchers", "0")
    #expect(try RawHTTP.get(address, "/api/events").status == 503)
    #expect(try RawHTTP.get(address, "/metrics").text.contains("sluice_admin_refused_watchers_total 1\n"))
    try broker.requireRunning()
  }

  @Test func aHeadThatIsTooLongForItsMemoryIsRefused() throws {
    let head = ["X-Long: \(String(repeating: "x", count: 20_000))"]
    for (bytes, isTaken) in [("8KiB", false), ("64KiB", true)] {
      let (broker, address) = try broker("--admin-connection-bytes", bytes)
      let status = try? RawHTTP.get(address, "/healthz", headers: head).status
      #expect((status == 200) == isTaken, "\(bytes): \(status ?? 0)")
      try broker.requireRunning()
    }
  }

  @Test func whoSendsNothingIsGivenUp() throws {
    let (broker, address) = try broker("--admin-request-timeout", "1s")
    let client = try RawHTTP(address)
    try client.send("GET / HT")
    try client.waitForClose()
    try broker.requireRunning()
  }
}
