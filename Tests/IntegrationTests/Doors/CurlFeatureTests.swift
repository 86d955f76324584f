import Glibc
import TestSupport
import Testing

/// Features of the HTTP gateway besides publishing and reading, with curl.
@Suite(.onItsOwnThread, .enabled(if: access("/usr/bin/curl", X_OK) == 0, "curl isn't installed"))
struct CurlFeatureTests {
  private let broker: BrokerProcess
  private let topics: String

  init() throws {
    broker = try BrokerProcess(
      "--listen", "http://127.0.0.1:0", "--listen", "127.0.0.1:0", "--origins", "https://app.example")
    topics = try #require(broker.addresses.first { $0.hasPrefix("http://") }) + "/topics"
  }

  private func run(_ arguments: [String]) throws -> (text: String, exit: ChildProcess.Exit) {
    let process = try ChildProcess("/usr/bin/curl", ["--silent"] + arguments)
    let exit = try process.waitForExit()
    return (process.standardOutput.text, exit)
  }

  private func curl(_ arguments: String...) throws -> String { try run(arguments).text }

  private let status = "%{http_code}"

  @Test func aGroupSharesRecordsAndGivesUnsettledOnesBack() throws {
    _ = try curl("--data-binary", "a\nb\nc\n", "\(topics)/jobs?lines")
    let groups = "\(topics)/jobs/groups/workers"
    let first = try curl(
      "-X", "POST", "-w", "%header{sluice-member}", "\(groups)/next?from=earliest&count=2&wait=20s")
    #expect(first.contains("\"payload\":\"a\"") && first.contains("\"delivery\":1"), "\(first)")
    let member = try #require(first.split(separator: "\n").last.map(String.init))
    #expect(try curl("--data", "0", "\(groups)/ack?member=\(member)") == "{\"records\":1}\n")
    #expect(try curl("-X", "POST", "\(groups)/leave?member=\(member)") == "{\"records\":0}\n")
    // Another member gets the records that the first one hadn't settled.
    let second = try curl(
      "-X", "POST", "-w", "%header{sluice-member}", "\(groups)/next?from=earliest&count=5&wait=20s")
    #expect(!second.contains("\"payload\":\"a\"") && second.contains("\"payload\":\"b\""), "\(second)")
    #expect(try curl("-X", "POST", "-w", status, "\(groups)/ack?member=none").hasSuffix("410"))
  }

  @Test func aCursorGoesOnWhereTheLastAnswerEnded() throws {
    _ = try curl("--data-binary", "a\nb\nc\n", "\(topics)/t?lines")
    let read = "\(topics)/t?cursor=billing&from=earliest&count=1"
    let raw = "Accept: application/octet-stream"
    #expect(try curl("-H", raw, read) == "a")
    #expect(try curl("-H", raw, read) == "b")
    #expect(try curl("-X", "POST", "-w", status, "\(topics)/t/cursors/billing?from=offset:0") == "204")
    #expect(try curl("-H", raw, read) == "a")
    #expect(try curl("-X", "DELETE", "-w", status, "\(topics)/t/cursors/billing") == "204")
    #expect(try curl("-X", "DELETE", "-w", status, "\(topics)/t/cursors/billing").hasSuffix("404"))
  }

  @Test func HEADHasTheHeadOfGETAndNoBody() throws {
    _ = try curl("--data", "1", "\(topics)/t")
    for path in ["", "/t", "/t/settings", "/missing", "/t?until=live"] {
      let head = try run(["--head", "-m", "10", "\(topics)\(path)"])
      #expect(head.exit == .code(0), "\(path)")
      let get = try curl("-D", "-", "-o", "/dev/null", "-m", path == "/t" ? "0.5" : "10", "\(topics)\(path)")
      let lines = [head.text, get].map { text in
        text.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("Date:") }
      }
      #expect(lines[0] == lines[1], "\(path)")
    }
  }

  @Test func whatIsMisspeltIsRefused() throws {
    _ = try curl("--data", "1", "\(topics)/t")
    let answer = try curl("-m", "10", "-w", status, "\(topics)/t?untill=live")
    #expect(answer.hasSuffix("400") && answer.contains("did you mean 'until'?"), "\(answer)")
    let field = try curl("--data", "2", "-H", "Sluice-Kye: k", "-w", status, "\(topics)/t")
    #expect(field.hasSuffix("400") && field.contains("Sluice-Key"), "\(field)")
  }

  @Test func eventsOfAnotherLifeOfATopicBeginWithItsFirst() throws {
    func events(_ id: String) throws -> [String] {
      let fields = ["Accept: text/event-stream", "Last-Event-ID: \(id)"].flatMap { ["-H", $0] }
      let text = try run(fields + ["-m", "10", "\(topics)/t?from=earliest&until=live"]).text
      return text.split(separator: "\n").filter { $0.hasPrefix("id: ") || $0.hasPrefix("event: ") }
        .map(String.init)
    }
    _ = try curl("--data-binary", "a\nb\n", "\(topics)/t?lines")
    let last = try #require(try events("").last?.dropFirst(4))
    #expect(try events(String(last)) == [])
    _ = try curl("-X", "DELETE", "\(topics)/t")
    _ = try curl("--data-binary", "A\nB\nC\n", "\(topics)/t?lines")
    let again = try events(String(last))
    #expect(again.first == "event: restarted" && again.count == 4, "\(again)")
  }

  @Test func filtersAndPatternsSelectRecords() throws {
    _ = try curl("--data", "1", "-H", "Sluice-Key: ä", "-H", "Sluice-Header-Unit: EUR", "\(topics)/a.x")
    _ = try curl("--data", "2", "-H", "Sluice-Key: ö", "\(topics)/a.x")
    _ = try curl("--data", "3", "-H", "Sluice-Key-Base64: /wA=", "\(topics)/a.y")
    _ = try curl("--data", "4", "\(topics)/b")
    func read(_ topic: String, _ query: String) throws -> String {
      try curl(
        "-H", "Accept: application/octet-stream", "\(topics)/\(topic)?from=earliest&until=live&\(query)")
    }
    #expect(try read("a.x", "key=%C3%A4") == "1")
    #expect(try read("a.x", "header=unit:EUR") == "1")
    #expect(try read("a.y", "key-base64=/wA=") == "3")
    #expect(Set(try read("a.%2A", "")) == ["1", "2", "3"])
    #expect(Set(try read("%3E", "")) == ["1", "2", "3", "4"])
    let resumed = try curl("-w", status, "-H", "Last-Event-ID: 0", "\(topics)/a.%2A?until=live")
    #expect(resumed.hasSuffix("400"), "\(resumed)")
  }

  @Test func clientsOfHTTP10PublishAndRead() throws {
    func curl(_ arguments: String...) throws -> String {
      try run(["--http1.0", "-w", status] + arguments).text
    }
    #expect(try curl("--data-binary", "a\nb\n", "\(topics)/t?lines").hasSuffix("200"))
    #expect(try curl("-H", "Accept: application/octet-stream", "\(topics)/t?until=live") == "ab200")
    // The response ends with the topic, and reports its failure.
    let failed = try ChildProcess.sluice(["pub", "t", "c", "--fail", "broken"], server: broker.address)
    #expect(try failed.waitForExit() == .code(0), "\(failed.messages)")
    let lines = try curl("\(topics)/t")
    #expect(lines.contains("{\"failure\":{") && lines.hasSuffix("}\n200"), "\(lines)")
  }

  @Test func topicsAreAdministered() throws {
    let made = try curl("-X", "PUT", "\(topics)/prices?replay-records=100&flow=lossless")
    #expect(made.contains("\"topic\":\"prices\"") && made.contains("\"flow\":\"lossless\""), "\(made)")
    #expect(try curl("-X", "PATCH", "\(topics)/prices?flow=free").contains("\"flow\":\"free\""))
    _ = try curl("--data-binary", "a\nb\nc\n", "\(topics)/prices?lines")
    #expect(
      try curl("-X", "POST", "-o", "/dev/null", "-w", status, "\(topics)/prices/trim?newest=1").hasPrefix(
        "20"))
    #expect(try curl("\(topics)/prices/settings").contains("\"firstOffset\":2,\"nextOffset\":3"))
    #expect(try curl("\(topics)?limit=1").contains("\"more\":false"))
    #expect(try curl("-X", "DELETE", "-w", status, "\(topics)/prices") == "204")
    #expect(try curl("-w", status, "\(topics)/prices/settings").hasSuffix("404"))
  }

  @Test func aPreflightIsAnsweredWithWhatIsPermitted() throws {
    let answer = try curl(
      "-i", "-X", "OPTIONS", "-H", "Origin: https://app.example", "-H",
      "Access-Control-Request-Headers: sluice-header-unit, sluice-key", "\(topics)/t"
    ).lowercased()
    #expect(answer.hasPrefix("http/1.1 204"))
    #expect(answer.contains("access-control-allow-origin: https://app.example\r\n"), "\(answer)")
    #expect(answer.contains(", sluice-header-unit\r\n"), "\(answer)")
    #expect(try curl("-w", status, "-H", "Origin: https://evil.example", topics).hasSuffix("403"))
  }

  @Test func eventsGoOnBehindTheLastOneAndEnd() throws {
    _ = try curl("--data-binary", "a\nb\n", "\(topics)/t?lines")
    let done = try ChildProcess.sluice(["pub", "t", "c", "--complete"], server: broker.address)
    #expect(try done.waitForExit() == .code(0))
    let events = ["-N", "-H", "Accept: text/event-stream", "-w", status]
    let rest = try run(events + ["-H", "Last-Event-ID: 1", "\(topics)/t"])
    #expect(rest.exit == .code(0))
    #expect(rest.text.hasPrefix("id: ") && rest.text.contains("-2\ndata: {"), "\(rest.text)")
    #expect(rest.text.hasSuffix("-end\nevent: finished\ndata: {\"topic\":\"t\"}\n\n200"), "\(rest.text)")
    let end = try #require(rest.text.split(whereSeparator: \.isNewline).last { $0.hasPrefix("id: ") })
      .dropFirst(4)
    for id in [String(end), "end"] {
      #expect(try run(events + ["-H", "Last-Event-ID: \(id)", "\(topics)/t"]).text == "204", "\(id)")
    }
  }

  @Test func theFailureOfATopicIsAnEventAndBreaksPayloads() throws {
    _ = try curl("--data", "a", "\(topics)/t")
    let failing = try ChildProcess.sluice(["pub", "t", "b", "--fail", "broken"], server: broker.address)
    #expect(try failing.waitForExit() == .code(0), "\(failing.messages)")
    let events = try run(["-N", "-H", "Accept: text/event-stream", "\(topics)/t?from=earliest"])
    #expect(events.exit == .code(0))
    #expect(
      events.text.contains("event: failure\n") && events.text.contains("\"message\":\"broken\""),
      "\(events.text)")
    let raw = try run(["-H", "Accept: application/octet-stream", "\(topics)/t?from=earliest"])
    #expect(raw.text == "ab")
    #expect(raw.exit == .code(18))
  }

  @Test func aTokenOrACertificateProvesAnIdentityOverTLS() throws {
    let (directory, keys) = (try TemporaryDirectory(), try TemporaryDirectory())
    let certificates = try TestCertificates.shared()
    func sluice(_ arguments: String...) throws {
      let process = try ChildProcess(BuiltProduct.path("sluice"), arguments)
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    }
    let (pair, token) = (directory.file("pair"), directory.file("token"))
    try sluice("token", "key", "--output", pair, "--public", keys.file("k.pem"))
    try sluice(
      "token", "make", "--key", pair, "--key-id", "k", "--subject", "shop", "--for", "1h", "--publish",
      "orders.>",
      "--create", "orders.>", "--output", token)
    let permissions = directory.file("permissions")
    try writeFile(permissions, Array("client publish,create devices.>\n".utf8))
    let broker = try BrokerProcess(
      "--listen", "https://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
      certificates.serverKey,
      "--tls-client-ca", certificates.authority, "--tls-client-certs", "optional", "--token-keys", keys.path,
      "--permissions", permissions)
    let address = try #require(broker.addresses.first { $0.hasPrefix("https://") })
    func published(_ topic: String, _ proof: [String]) throws -> String {
      try run(
        ["--cacert", certificates.authority, "-o", "/dev/null", "-w", status, "--data", "x"] + proof
          + ["\(address)/topics/\(topic)"]
      ).text
    }
    let made = String(decoding: try readFile(token), as: UTF8.self)
    let bearer = ["-H", "Authorization: Bearer \(made.split(separator: "\n")[0])"]
    let certificate = ["--cert", certificates.client, "--key", certificates.clientKey]
    #expect(try published("orders.a", bearer) == "200")
    #expect(try published("devices.a", bearer) == "403")
    #expect(try published("devices.a", certificate) == "200")
    #expect(try published("orders.a", certificate) == "403")
    #expect(try published("orders.a", []) == "401")
    #expect(try published("orders.a", ["-H", "Authorization: Bearer nonsense"]) == "401")
  }
}
