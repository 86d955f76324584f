import Glibc
import TestSupport
import Testing

/// curl with a broker.
@Suite(.onItsOwnThread, .enabled(if: access("/usr/bin/curl", X_OK) == 0, "curl isn't installed"))
struct CurlTests {
  private func broker(_ options: String...) throws -> (BrokerProcess, topics: String) {
    let broker = try BrokerProcess(options: ["--listen", "http://127.0.0.1:0"] + options)
    let address = try #require(broker.addresses.first { $0.hasPrefix("http://") })
    return (broker, "\(address)/topics")
  }

  private func curl(_ arguments: String..., input: ChildProcess.Input = .nothing) throws -> (
    text: String, exit: ChildProcess.Exit
  ) {
    let process = try ChildProcess("/usr/bin/curl", ["--silent", "--show-error"] + arguments, input: input)
    let exit = try process.waitForExit()
    return (process.standardOutput.text, exit)
  }

  @Test func recordsGoInAndOut() throws {
    let (broker, topics) = try broker()
    #expect(
      try curl("--data", "hello", "\(topics)/t").text == "{\"topic\":\"t\",\"records\":1,\"lastOffset\":0}\n")
    let lines = (0..<20_000).map { "line \($0)" }.joined(separator: "\n")
    let published = try curl("--data-binary", "@-", "\(topics)/t?lines", input: .bytes(Array(lines.utf8)))
    #expect(published.text == "{\"topic\":\"t\",\"records\":20000,\"lastOffset\":20000}\n")
    let read = try curl("\(topics)/t?from=offset:1&until=live", "-H", "Accept: application/octet-stream")
    #expect(read.exit == .code(0))
    let same = read.text == lines.replacing("\n", with: "")
    #expect(same)
    let last = try curl("\(topics)/t?from=last:1&count=1").text
    #expect(
      last.hasPrefix("{\"offset\":20000,\"topic\":\"t\",\"time\":\"")
        && last.hasSuffix(",\"payload\":\"line 19999\"}\n"))
    // The native protocol delivers the same records.
    let reader = try ChildProcess.sluice(["sub", "t", "--until-live"], server: broker.address)
    #expect(try reader.waitForExit() == .code(0))
    let alsoSame = reader.standardOutput.text == "hello\n" + lines + "\n"
    #expect(alsoSame)
  }

  @Test func eventsFollowUntilTheTopicEnds() throws {
    let (broker, topics) = try broker()
    _ = try curl("--data", "one", "\(topics)/t")
    let events = try ChildProcess("/usr/bin/curl", ["-sN", "-H", "Accept: text/event-stream", "\(topics)/t"])
    try eventually("the first event") { events.standardOutput.text.contains("\"payload\":\"one\"") }
    let publisher = try ChildProcess.sluice(["pub", "t", "two", "--complete"], server: broker.address)
    #expect(try publisher.waitForExit() == .code(0))
    #expect(try events.waitForExit() == .code(0))
    #expect(events.standardOutput.text.hasSuffix("event: finished\ndata: {\"topic\":\"t\"}\n\n"))
  }

  @Test func aRequestGetsItsReply() throws {
    let (broker, topics) = try broker()
    let format = "\n%{http_code} %{content_type} %header{sluice-header-unit}"
    // The command line replies to curl.
    let service = try ChildProcess.sluice(["reply", "upper", "--exec", "tr a-z A-Z"], server: broker.address)
    var answer = ""
    try eventually("the service replies") {
      answer = try curl("--data", "hello", "-w", format, "\(topics)/upper/request?timeout=20s").text
      return answer.hasPrefix("HELLO")
    }
    #expect(answer == "HELLO\n200 application/octet-stream ")
    service.signal(SIGTERM)
    _ = try service.waitForExit()
    // curl replies to curl.
    let responder = try ChildProcess("/usr/bin/curl", ["-sN", "\(topics)/prices/requests"])
    try eventually("the responder is attached") {
      try curl("\(topics)/prices/settings").text.contains("\"subscriptions\":1")
    }
    let requester = try ChildProcess(
      "/usr/bin/curl",
      ["-s", "--data", "ACME", "-w", format, "\(topics)/prices/request?timeout=60s"])
    let request = try responder.standardOutput.line(startingWith: "{\"offset\":0,")
    let path = try #require(request.split(separator: "\"reply\":\"").last?.prefix { $0 != "\"" })
    let server = topics.dropLast("/topics".utf8.count)
    let reply = try curl(
      "--data", "42", "-H", "Content-Type: text/plain", "-H", "Sluice-Header-Unit: EUR", "-w",
      "%{http_code}", "\(server)\(path)")
    #expect(reply.text == "204")
    #expect(try requester.waitForExit() == .code(0))
    #expect(requester.standardOutput.text == "42\n200 text/plain EUR")
    // No reply in time, and no responder.
    let late = try curl("--data", "x", "-w", format, "\(topics)/prices/request?timeout=100ms").text
    #expect(late.contains("no reply came within") && late.contains("\n504 application/json"), "\(late)")
    let none = try curl("--data", "x", "-w", "%{http_code}", "\(topics)/nothing/request").text
    #expect(none.contains("no-responders") && none.hasSuffix("503"), "\(none)")
    responder.signal(SIGTERM)
    withExtendedLifetime(broker) {}
  }

  @Test func usersProveTheirIdentityByBasicOverTLS() throws {
    let directory = try TemporaryDirectory()
    let certificates = try TestCertificates()
    let (users, permissions) = (directory.file("users"), directory.file("permissions"))
    let user = try ChildProcess(
      BuiltProduct.path("sluice"), ["user", "add", "alice", "--file", users],
      input: .bytes(Array("secret words\n".utf8)))
    #expect(try user.waitForExit() == .code(0), "\(user.messages)")
    try writeFile(permissions, Array("alice publish,subscribe,create mine.>\n".utf8))
    let broker = try BrokerProcess(
      "--listen", "https://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
      certificates.serverKey,
      "--users", users, "--permissions", permissions)
    let address = try #require(broker.addresses.first { $0.hasPrefix("https://") })
    func status(_ topic: String, _ proof: String...) throws -> String {
      let process = try ChildProcess(
        "/usr/bin/curl",
        ["-s", "-k", "-o", "/dev/null", "-w", "%{http_code}", "--data", "x"] + proof + [
          "\(address)/topics/\(topic)"
        ])
      _ = try process.waitForExit()
      return process.standardOutput.text
    }
    #expect(try status("mine.a", "--user", "alice:secret words") == "200")
    #expect(try status("other", "--user", "alice:secret words") == "403")
    #expect(try status("mine.a", "--user", "alice:wrong") == "401")
    #expect(try status("mine.a") == "401")
    // The client offers only HTTP/1.0 by ALPN.
    #expect(try status("mine.a", "--http1.0", "--user", "alice:secret words") == "200")
    let other = try ChildProcess(
      "/usr/bin/openssl",
      ["s_client", "-connect", String(address.dropFirst("https://".count)), "-alpn", "h2"])
    _ = try other.waitForExit()
    try eventually("the log says why") {
      broker.process.standardError.text.contains("names no protocol by ALPN that is spoken")
    }
  }
}
