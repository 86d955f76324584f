import Foundation
import TestSupport
import Testing

/// `sluice status`, `connection`, `group`, and cursors of all topics, with real processes.
@Suite(.onItsOwnThread) struct BrokerCommandTests {
  @Test func theBrokerIsShownInOneScreen() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path, "--admin-problem-hold", "100ms")
    try broker.run("topic", "create", "held", "--flow", "lossless", "--without-subscribers", "hold")
    #expect(try broker.run("status").standardOutput.text.hasSuffix("problems     none\n"))
    let producer = try broker.client()
    try producer.openPublication("held", stream: 1)
    let text = try broker.run("status").standardOutput.text
    for part in [
      "broker ", "connections ", "memory ", "storage ", "blocked      producers of held for ",
    ] {
      #expect(text.contains(part), "\(part): \(text)")
    }
    // No line contradicts another one.
    #expect(!text.contains("none") && text.split(separator: "\n").count < 24)
    #expect(text.contains("0 subscriptions, 1 publication\n"))
    let object = try #require(
      JSONSerialization.jsonObject(with: Data(try broker.run("status", "--json").standardOutput.bytes))
        as? [String: Any])
    #expect((object["problems"] as? [Any])?.isEmpty == true && object["stopped"] as? Int == 1)
    #expect((object["numbers"] as? [String: Int])?["topics"] == 1)
    // This problem is a warning only.
    try eventually("the broker has found that") {
      try broker.run("status").standardOutput.text.contains(
        "The producers of held are blocked")
    }
    #expect(try broker.run("status", "--json").standardOutput.text.contains(#""severity":"warning""#))
  }

  @Test func aGroupIsShownWithItsMembers() throws {
    let broker = try BrokerProcess()
    try broker.run("pub", "jobs", "--quiet", "1", "2", "3")
    let members = try (0..<2).map { _ in
      try broker.sluice("sub", "jobs", "--group", "workers", "--demand", "5")
    }
    let other = try broker.sluice("sub", "jobs")
    try broker.waitForSubscriptions(3, on: "jobs")
    let lines = try broker.run("group", "show", "jobs", "workers").standardOutput.lines
    let shown = lines.filter { $0.hasPrefix("member ") }
    #expect(shown.count == 2, "\(lines)")
    for member in members {
      #expect(
        shown.contains { $0.contains("sluice[\(member.pid)] on connection") && $0.contains("demand for") })
    }
    let object = try #require(
      JSONSerialization.jsonObject(
        with: Data(try broker.run("group", "show", "jobs", "workers", "--json").standardOutput.bytes))
        as? [String: Any])
    #expect((object["member_list"] as? [Any])?.count == 2)
    for process in members + [other] { process.stop() }
  }

  @Test func connectionsAreSorted() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "t")
    let first = try broker.client("b")
    let second = try broker.client("a")
    try second.subscribe("t", stream: 1, granted: 1)
    try broker.waitForSubscriptions(1, on: "t")
    func clients(_ arguments: String...) throws -> [String] {
      try broker.run(["connection", "list"] + arguments).standardOutput.lines.dropFirst().compactMap {
        $0.split(separator: " ").first.map(String.init)
      }
      .filter { !$0.hasPrefix("sluice[") }
    }
    #expect(try clients() == ["b", "a"])
    #expect(try clients("--sort", "client") == ["a", "b"])
    #expect(try clients("--sort", "subscriptions", "-n", "1") == ["a"])
    #expect(try clients("--sort", "received", "-n", "1") == ["a"])
    try broker.run("connection", "list", "--sort", "weight", code: 2)
    withExtendedLifetime((first, second)) {}
  }

  @Test func aConnectionIsListedShownAndClosed() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "t")
    let subscriber = try broker.sluice("sub", "t")
    try broker.waitForSubscriptions(1, on: "t")
    func list() throws -> [[String: Any]] {
      try broker.run("connection", "list", "--json", "--client", "sluice").standardOutput.lines.filter {
        !$0.isEmpty
      }
      .compactMap { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
      .filter { $0["subscriptions"] as? Int == 1 }
    }
    let found = try list()
    try #require(found.count == 1)
    let number = "\(found[0]["connection"] as? Int ?? 0)"
    let shown = try broker.run("connection", "show", number).standardOutput.text
    #expect(shown.contains("sluice[\(subscriber.pid)]") && shown.contains("no TLS"))
    let (received, sent) = (found[0]["received_bytes"] as? Int ?? 0, found[0]["sent_bytes"] as? Int ?? 0)
    #expect(received > 50 && sent > 50 && shown.contains("received       \(received) B\n"), "\(shown)")
    #expect(
      try broker.run("connection", "close", number).standardError.text
        == "sluice: closed connection \(number)\n")
    // The client reports it, and reconnects.
    try eventually("it says so") {
      subscriber.standardError.text.contains("an operator has closed the connection")
    }
    try broker.waitForSubscriptions(1, on: "t")
    let again = try list()
    #expect(again.count == 1 && again[0]["connection"] as? Int != found[0]["connection"] as? Int)
    for command in ["show", "close"] {
      #expect(
        try broker.run("connection", command, number, code: 1).standardError.text
          == "sluice: there is no connection \(number)\n")
      _ = try broker.run("connection", command, "x", code: 2)
    }
    #expect(
      broker.process.standardError.text.contains("action=close-connection outcome=done target=\(number)"))
  }

  @Test func cursorsAndGroupsOfAllTopicsAreListed() throws {
    let broker = try BrokerProcess()
    for topic in ["a", "b"] {
      try broker.run("pub", topic, "--quiet", "1", "2", "3")
      try broker.run("sub", topic, "--cursor", "c", "--count", "1")
      try broker.run("sub", topic, "--group", "g", "--count", "2", "--ack", "auto")
    }
    func rows(_ arguments: String...) throws -> [[String]] {
      try broker.run(arguments).standardOutput.lines.dropFirst().filter { !$0.isEmpty }
        .map { $0.split(separator: " ").prefix(3).map(String.init) }
    }
    #expect(
      try rows("cursor", "list") == [
        ["a", "c", "cursor"], ["a", "g", "group"], ["b", "c", "cursor"], ["b", "g", "group"],
      ])
    #expect(try rows("group", "list") == [["a", "g", "group"], ["b", "g", "group"]])
    #expect(try rows("group", "list", "b").map { $0[0] } == ["g"])
    let lines = try broker.run("group", "list", "--json").standardOutput.lines.filter { !$0.isEmpty }
    #expect(lines.count == 2 && lines[1].contains("\"topic\":\"b\""))
    let shown = try broker.run("group", "show", "a", "g").standardOutput.text
    #expect(shown.contains("next offset     2") && shown.contains("behind          1 record, 5 B, for "))
    #expect(try broker.run("group", "show", "a", "c", code: 1).standardError.text.contains("has no group c"))
    #expect(
      try broker.run("group", "show", "x", "g", code: 1).standardError.text.contains("there is no topic x"))
  }

  @Test func whatIsDoneIsConfirmedInALine() throws {
    let broker = try BrokerProcess()
    for topic in ["t", "u"] { try broker.run("topic", "create", topic, "--connect", "manual") }
    func confirmation(_ arguments: String...) throws -> String {
      let run = try broker.run(arguments)
      #expect(run.standardOutput.text.isEmpty)
      return run.standardError.text
    }
    #expect(try confirmation("topic", "connect", "t") == "sluice: connected topic t\n")
    #expect(try confirmation("topic", "disconnect", "t") == "sluice: disconnected topic t\n")
    #expect(
      try confirmation("cursor", "move", "t", "c", "--to", "earliest")
        == "sluice: moved c of topic t to earliest\n"
    )
    #expect(try confirmation("cursor", "delete", "t", "c") == "sluice: deleted c of topic t\n")
    #expect(try confirmation("topic", "complete", "t") == "sluice: completed topic t\n")
    #expect(try confirmation("topic", "fail", "u", "over") == "sluice: failed topic u\n")
    try broker.run("topic", "create", "v", "--connect", "manual")
    #expect(try confirmation("topic", "connect", "v", "-q").isEmpty)
    #expect(try confirmation("cursor", "move", "v", "c", "--to", "new", "--quiet").isEmpty)
    #expect(try confirmation("cursor", "delete", "v", "c", "-q").isEmpty)
    #expect(try confirmation("topic", "complete", "v", "--quiet").isEmpty)
  }

  // MARK: Records

  @Test func aTopicIsCopiedWithKeysAndHeaders() throws {
    let broker = try BrokerProcess()
    try broker.run("pub", "a", "--quiet", "--key", "k", "--header", "h=v", "one", "two \"quoted\"\u{1}")
    try broker.run("pub", "a", "--quiet", "--delimiter", "none", input: .bytes([0xFF, 0xFE, 0]))
    let json = try broker.run("sub", "a", "--json", "--until-live").standardOutput.text
    try broker.run("pub", "b", "--json", "--quiet", "--file", "-", input: .bytes(Array(json.utf8)))
    func parts(_ topic: String) throws -> String {
      let format = "{offset} {key} {headers} {payload}"
      return try broker.run("sub", topic, "--until-live", "--format", format).standardOutput.text
    }
    #expect(try parts("a") == parts("b"))
    #expect(try broker.run("sub", "b", "--json", "--until-live").standardOutput.lines.count >= 3)
    // Records read before the error are published.
    let broken = try broker.run(
      "pub", "c", "--json", input: .bytes(Array("{\"payload\":\"x\"}\n{\n".utf8)), code: 1)
    #expect(broken.standardError.text.contains("record 2: it isn't JSON"))
    #expect(try broker.run("sub", "c", "--until-live").standardOutput.text == "x\n")
  }

  @Test func linesHaveKeys() throws {
    let broker = try BrokerProcess()
    try broker.run(
      "pub", "t", "--quiet", "--key-separator", ": ", input: .bytes(Array("a: 1\nb: 2: 3\n".utf8)))
    #expect(
      try broker.run("sub", "t", "--until-live", "--format", "{key}={payload}").standardOutput.text
        == "a=1\nb=2: 3\n")
    _ = try broker.run("pub", "t", "--key-separator", ":", input: .bytes(Array("none\n".utf8)), code: 1)
    for wrong in [
      ["--json", "--key", "k"], ["--json", "--frames"], ["--key-separator", ":", "--key", "k"],
      ["--key-separator", ""], ["--json", "message"],
    ] {
      _ = try broker.run(["pub", "t"] + wrong, code: 2)
    }
  }

  // MARK: Terminals

  @Test func progressIsShownOnATerminalOnly() throws {
    let broker = try BrokerProcess()
    let directory = try TemporaryDirectory()
    let file = directory.file("lines")
    try String(repeating: "a line\n", count: 12).write(toFile: file, atomically: true, encoding: .utf8)
    let publish = ["pub", "t", "--file", file, "--rate", "6"]
    let tool = [try BuiltProduct.path("sluice")]
    let shown = try TerminalSession.run(
      tool + publish, server: broker.address, environment: ["TERM": "xterm", "NO_COLOR": ""])
    #expect(shown.code == 0 && shown.output.contains(" of 84 B (") && shown.output.contains("\u{1B}[2m"))
    let plain = try TerminalSession.run(
      tool + publish, server: broker.address, environment: ["TERM": "xterm", "NO_COLOR": "1"])
    #expect(plain.output.contains(" of 84 B (") && !plain.output.contains("\u{1B}[2m"))
    let piped = try broker.run(publish)
    #expect(!piped.standardError.text.contains("\u{1B}") && piped.standardError.lines.count == 1)
    let copy = directory.file("copy")
    try broker.run("sub", "t", "--until-live", "-o", copy)
    #expect(try String(contentsOfFile: copy, encoding: .utf8) == String(repeating: "a line\n", count: 36))
    #expect(
      try broker.run("sub", "t", "-o", directory.file("missing/x"), code: 1).standardError.text.contains(
        "cannot open"))
  }

  @Test func aReplyOnATerminalEndsItsLine() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "echo")
    let service = try broker.sluice("reply", "echo", "--exec", "printf hi", "--quiet")
    try broker.waitForSubscriptions(1, on: "echo")
    let shown = try TerminalSession.run(
      [BuiltProduct.path("sluice"), "request", "echo", "x"], server: broker.address)
    #expect(shown.output == "hi\r\n")
    #expect(try broker.run("request", "echo", "x").standardOutput.text == "hi")
    service.stop()
  }

  @Test func connectionOptionsAreExplainedOnce() throws {
    let broker = try BrokerProcess()
    #expect(try broker.run("help", "connecting").standardOutput.text.contains("--tls-server-name"))
    for command in [["pub"], ["topic"], ["topic", "create"], ["status"]] {
      let help = try broker.run(command + ["--help"]).standardOutput.text
      // Wrapping may split the sentence over two lines.
      let words = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(words.contains("see sluice help connecting.") && !help.contains("--tls-ca"), "\(command)")
    }
    #expect(try !broker.run("store", "stat", "--help").standardOutput.text.contains("help connecting"))
  }
}
