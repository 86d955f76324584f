import Glibc
import TestSupport
import Testing

/// The admin listener of a real broker.
@Suite(.onItsOwnThread) struct AdminTests {
  private func broker(_ options: String...) throws -> (broker: BrokerProcess, address: String) {
    let broker = try BrokerProcess(options: ["--admin", "\(Loopback.freshHost()):0"] + options)
    return (broker, try #require(broker.adminAddress))
  }

  private func publish(_ records: [String], to topic: String, _ broker: BrokerProcess) throws {
    #expect(
      try broker.sluice("pub", topic, "--quiet", input: .bytes(Array(records.joined(separator: "\n").utf8)))
        .waitForExit() == .code(0))
  }

  @Test func itSaysWhereItIsBeforeItIsReady() throws {
    let (broker, address) = try broker()
    #expect(
      broker.process.standardOutput.lines == [
        "sluiced listening on \(broker.address)", "sluiced admin on \(address)", "sluiced ready",
      ])
    #expect(try RawHTTP.get(address, "/healthz").status == 200)
    #expect(try RawHTTP.get(address, "/readyz").text == "ready\n")
    #expect(try broker.terminate() == .code(0))
    #expect(throws: (any Error).self) { try RawHTTP.get(address, "/healthz") }
  }

  @Test func whatGoesThroughATopicIsCounted() throws {
    let (broker, address) = try broker()
    try publish(["a", "b", "c"], to: "orders.eu", broker)
    let reader = try broker.sluice("sub", "orders.eu", "--until-live")
    #expect(try reader.waitForExit() == .code(0))
    var lines: [Substring] = []
    try eventually("what was sent is counted", every: 0.1) {
      let answer = try RawHTTP.get(address, "/metrics")
      #expect(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
      lines = answer.text.split(separator: "\n")
      return lines.contains("sluice_topic_records_sent_total{topic=\"orders.eu\"} 3")
    }
    #expect(lines.contains("sluice_topic_records_received_total{topic=\"orders.eu\"} 3"))
    #expect(lines.contains("sluice_topic_retained_records{topic=\"orders.eu\"} 3"))
    #expect(lines.contains { $0.hasPrefix("process_cpu_seconds_total ") })
    #expect(lines.contains { $0.hasPrefix("sluice_broker_connections_accepted_total ") })
  }

  @Test func soManyTopicsHaveLinesOfTheirOwn() throws {
    let (broker, address) = try broker("--admin-topics", "2")
    for topic in ["a", "b", "c", "d"] { try broker.client().publishAll(["x"], to: topic) }
    let records = try RawHTTP.get(address, "/metrics").text.split(separator: "\n").filter {
      $0.hasPrefix("sluice_topic_retained_records{")
    }
    #expect(records.count == 3, "\(records)")
    #expect(records.contains("sluice_topic_retained_records{topic=\"all other topics\"} 2"), "\(records)")
  }

  @Test(
    .enabled(if: Promtool.path != nil, "promtool isn't installed: scripts/bootstrap.sh --tests installs it"))
  func promtoolTakesTheMetrics() throws {
    let (broker, address) = try broker()
    try publish(["a"], to: "orders", broker)
    let text = try RawHTTP.get(address, "/metrics").body
    let tool = try ChildProcess(try #require(Promtool.path), ["check", "metrics"], input: .bytes(text))
    #expect(try tool.waitForExit() == .code(0))
    #expect(tool.standardError.text + tool.standardOutput.text == "")
  }

  @Test func recordsAreShown() throws {
    let (broker, address) = try broker()
    try publish(["a", "b", "<b>c</b>"], to: "orders.eu", broker)
    let records = try RawHTTP.get(address, "/api/topics/orders.eu/records?count=2")
    #expect(records.headers["content-type"] == "application/json; charset=utf-8")
    #expect(!records.text.contains("\"text\":\"a\""))
    #expect(records.text.contains("\"text\":\"b\""))
    #expect(records.text.contains("\"offset\":2,") && records.text.contains("\"text\":\"<b>c</b>\""))
    #expect(try RawHTTP.get(address, "/api/topics/orders.eu").text.contains("\"nextOffset\":3"))
    #expect(try RawHTTP.get(address, "/api/topics").text.contains("\"name\":\"orders.eu\""))
    #expect(try RawHTTP.get(address, "/api/topics/other").status == 404)
    #expect(try RawHTTP.get(address, "/api/topics/other/records").status == 404)
    // Reading a topic doesn't create it.
    #expect(try !RawHTTP.get(address, "/api/topics").text.contains("other"))
  }

  @Test func aWatcherSeesWhatHappens() throws {
    let (broker, address) = try broker()
    let watcher = try RawHTTP(address)
    try watcher.request("/api/events?topic=orders")
    #expect(try watcher.answer(hasBody: false).headers["content-type"] == "text/event-stream; charset=utf-8")
    #expect(try watcher.text(upTo: "\"state\":\"missing\"").contains("\"all\":true"))
    try publish(["a", "b"], to: "orders", broker)
    let subscriber = try broker.sluice("sub", "orders", "--demand", "5")
    let text = try watcher.text(upTo: "\"subscribers\":[{")
    #expect(text.contains("\"all\":false") && !text.contains("\"all\":true"))
    subscriber.stop()
    _ = try watcher.text(upTo: "\"subscribers\":[]")
  }

  @Test func aPortThatIsTakenIsSaidInOneLine() throws {
    let (first, address) = try broker()
    let second = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--listen", "127.0.0.1:0", "--admin", address])
    #expect(try second.waitForExit() == .code(2))
    #expect(second.standardOutput.text == "")
    #expect(second.standardError.lines.count == 1)
    #expect(second.standardError.text.contains("\(address): Address already in use"))
    #expect(second.standardError.text.contains("--admin off"))
    try first.requireRunning()
  }

  @Test func nothingIsHalfStartedWhenTheBrokersPortIsTaken() throws {
    let (broker, _) = try broker()
    let second = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--listen", broker.address, "--admin", "\(Loopback.freshHost()):0"])
    #expect(try second.waitForExit() == .code(2))
    #expect(second.standardOutput.text == "")
  }

  @Test func aUnixSocketDoes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("admin")
    let broker = try BrokerProcess("--admin", "unix:\(path)")
    #expect(broker.adminAddress == "unix:\(path)")
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let connected = withUnsafeBytes(of: &address) {
      connect(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
    #expect(connected == 0)
    let request = Array("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
    #expect(write(descriptor, request, request.count) == request.count)
    var answer = [UInt8](repeating: 0, count: 4_096)
    let count = read(descriptor, &answer, answer.count)
    #expect(String(decoding: answer[..<max(count, 0)], as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
    #expect(try broker.terminate() == .code(0))
    #expect(access(path, F_OK) != 0)
  }
}
