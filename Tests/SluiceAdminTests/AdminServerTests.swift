import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceAdmin

/// The listener with a made-up broker.
@Suite struct AdminServerTests {
  private func server(_ source: FixtureSource, _ change: (inout AdminOptions) -> Void = { _ in }) throws
    -> AdminServer
  {
    var options = AdminOptions()
    options.version = "1.2.3"
    change(&options)
    return try AdminServer(at: .host(Loopback.freshHost(), port: 0), source, options)
  }

  private func get(_ server: AdminServer, _ target: String, headers: [String] = []) throws -> RawHTTP.Answer {
    try RawHTTP.get(server.address.description, target, headers: headers)
  }

  @Test func readinessFollowsTheBroker() throws {
    let source = FixtureSource { $0.stage = .starting }
    let server = try server(source)
    defer { server.stop() }
    #expect(try get(server, "/healthz").status == 200)
    #expect(try get(server, "/readyz").status == 503)
    #expect(try get(server, "/metrics").status == 503)
    source.state.withLock { $0.stage = .ready }
    #expect(try get(server, "/readyz").status == 200)
    #expect(try get(server, "/metrics").status == 200)
    source.state.withLock { $0.stage = .stopping }
    #expect(try get(server, "/healthz").status == 200)
    #expect(try get(server, "/readyz").status == 503)
    #expect(try get(server, "/metrics").status == 200)
  }

  /// Subscribers, topics in memory, and the operator during cleanup need the broker: see `AdminService.readiness`.
  @Test(arguments: [(StorageStatus.State.full, "full"), (.failing, "failing")])
  func aBrokerWhoseStoreTakesNothingIsReadyAndSaysSo(state: StorageStatus.State, word: String) throws {
    let source = FixtureSource { $0.snapshot.storage = StoreSnapshot() }
    let server = try server(source)
    defer { server.stop() }
    #expect(try get(server, "/readyz").text == "ready\n")
    #expect(try get(server, "/readyz?storage=required").status == 200)
    source.state.withLock { source in
      source.snapshot.storage?.state = state
      source.snapshot.storage?.since = 90_000
      source.snapshot.storage?.waiting = 3
      source.snapshot.storage?.message = "there is no room"
    }
    let answer = try get(server, "/readyz")
    #expect(answer.status == 200)
    #expect(
      answer.text == "ready, degraded: storage \(word) for 90 s, 3 publishers waiting: there is no room\n")
    let strict = try get(server, "/readyz?storage=required")
    #expect(strict.status == 503 && strict.text.hasPrefix("storage \(word) for 90 s"))
  }

  @Test(arguments: [
    ["Host: HOST", "Host: HOST"], ["Host: HOST", "host: elsewhere"], ["Host: HOST", "Host : HOST"],
    ["Host: HOST", "Accept : text/plain"], ["Host: HOST", "Accept\t: text/plain"],
    ["Host: HOST", "Content-Length: 2", "Content-Length: 2"],
    ["Host: HOST", "Content-Length: 0", "Content-Length: 0"],
    ["Host: HOST", "Content-Length: 2", "Transfer-Encoding: chunked"],
  ])
  func headsThatHTTPForbidsAreRefusedAndEndTheConnection(headers: [String]) throws {
    let server = try server(FixtureSource())
    defer { server.stop() }
    let host = server.address.description
    for target in ["/healthz", "/api/broker"] {
      let client = try RawHTTP(host)
      try client.request(target, headers: headers.map { $0.replacing("HOST", with: host) })
      #expect(try client.answer().status == 400, "\(target)")
      try client.waitForClose()
    }
    #expect(try get(server, "/healthz").status == 200)
  }

  @Test func aPageOverTLSIsntAPageOfAListenerWithoutIt() throws {
    let server = try server(FixtureSource())
    defer { server.stop() }
    let host = server.address.description
    #expect(try get(server, "/api/broker", headers: ["Origin: http://\(host)"]).status == 200)
    #expect(try get(server, "/api/broker", headers: ["Origin: https://\(host)"]).status == 403)
  }

  @Test func problemsAndHistoryAreServed() throws {
    let source = FixtureSource { state in
      state.snapshot.time = 1_000_000
      state.snapshot.topics = [TopicSnapshot("held") { $0.heldUp = 90_000 }]
    }
    let server = try server(source)
    defer { server.stop() }
    try eventually("the problem is found") {
      try get(server, "/api/problems").text.contains("The producers of held are blocked")
    }
    let watcher = try RawHTTP(server.address.description)
    try watcher.request("/api/events")
    _ = try watcher.text(upTo: "\"link\":\"#/topics/held\"")
    let history = try get(server, "/api/history?range=60").text
    #expect(history.contains("\"stepSeconds\":1,") && history.contains("\"residentBytes\":["))
    #expect(try get(server, "/api/history?topic=elsewhere").status == 404)
    #expect(try get(server, "/api/history?range=0").status == 400)
  }

  @Test func topicsComeInPages() throws {
    let source = FixtureSource { state in
      state.snapshot.topics = ["a", "b", "c"].map { TopicSnapshot($0) }
      state.snapshot.topicCount = 3
    }
    let server = try server(source)
    defer { server.stop() }
    let first = try get(server, "/api/topics?limit=2").text
    #expect(
      first.contains("\"name\":\"b\"") && !first.contains("\"name\":\"c\"") && first.contains("\"more\":true")
    )
    let second = try get(server, "/api/topics?limit=2&after=b").text
    #expect(
      !second.contains("\"name\":\"b\"") && second.contains("\"name\":\"c\"")
        && second.contains("\"more\":false"))
    #expect(second.contains("\"count\":3"))
  }

  @Test func pagesFollowTheBytesOfNamesAndNotHowTheyRead() throws {
    // The first name looks like é, which sorts after z.
    let source = FixtureSource { state in
      state.snapshot.topics = ["e\u{301}", "z"].map { TopicSnapshot($0) }
    }
    let server = try server(source)
    defer { server.stop() }
    let page = try get(server, "/api/topics?after=e%CC%81").text
    #expect(page.contains("\"name\":\"z\"") && !page.contains("\u{301}"))
  }

  @Test func aBrokerThatSaysNothingIsntWaitedForForEver() throws {
    let server = try server(FixtureSource { $0.isSilent = true }) { $0.limits.source = 1 }
    defer { server.stop() }
    #expect(try get(server, "/metrics").status == 503)
    #expect(try get(server, "/healthz").status == 200)
  }

  @Test func stoppingDoesntWaitForTheBrokerOrForWatchers() throws {
    let server = try server(FixtureSource { $0.isSilent = true })
    let address = server.address.description
    let watcher = try RawHTTP(address)
    try watcher.request("/api/events")
    #expect(try watcher.answer(hasBody: false).status == 200)
    let asking = try RawHTTP(address)
    try asking.request("/metrics")
    _ = try get(server, "/healthz")
    server.stop()
    try watcher.waitForClose()
    try asking.waitForClose()
  }

  @Test func nothingIsSampledWhileNobodyWatches() throws {
    let source = FixtureSource()
    let server = try server(source) { $0.history.length = 0 }
    defer { server.stop() }
    _ = try get(server, "/healthz")
    #expect(try get(server, "/api/problems").status == 404 && get(server, "/api/history").status == 404)
    #expect(source.requests.isEmpty)
    // Two watchers cost as much as one.
    let watchers = try (0..<2).map { _ in
      let watcher = try RawHTTP(server.address.description)
      try watcher.request("/api/events")
      return watcher
    }
    for watcher in watchers { _ = try watcher.text(upTo: "\"all\":true") }
    for watcher in watchers { _ = try watcher.text(upTo: "\"all\":false") }
    for watcher in watchers { watcher.socket.close() }
    try eventually("nothing is sampled any more") {
      let before = source.requests.count
      pause(2.5)
      return source.requests.count == before
    }
  }

  @Test func aPasswordIsLookedAtOnce() throws {
    let source = FixtureSource { state in
      var policy = AccessPolicy()
      policy.users = PasswordHash(of: "open sesame").map { ["alice": $0] } ?? [:]
      policy.permissions["alice"] = (try? TopicPattern(">")).map { Permissions([.init(.admin, on: $0)]) }
      state.policy = policy
    }
    let server = try server(source)
    defer { server.stop() }
    let header = ["Authorization: Basic YWxpY2U6b3BlbiBzZXNhbWU="]
    #expect(try get(server, "/api/broker").status == 401)
    for _ in 0..<3 { #expect(try get(server, "/api/broker", headers: header).status == 200) }
    #expect(source.state.withLock { $0.attempts } == 1)
    // The present policy applies, not that of the time of connecting.
    source.state.withLock { $0.policy?.permissions = [:] }
    #expect(try get(server, "/api/broker", headers: header).status == 403)
    source.state.withLock { $0.policy?.users = [:] }
    #expect(try get(server, "/api/broker", headers: header).status == 401)
  }

  @Test func aConnectionIsKeptForTheNextRequest() throws {
    let server = try server(FixtureSource())
    defer { server.stop() }
    let client = try RawHTTP(server.address.description)
    for target in ["/healthz", "/metrics", "/nowhere", "/readyz"] { try client.request(target) }
    #expect(try (0..<4).map { _ in try client.answer().status } == [200, 200, 404, 200])
  }
}
