import Foundation
import SluiceAccess
import SluiceCommand
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceTool

/// Harmful texts chosen by peers, in every output. No command prints a character to a terminal that the terminal would interpret, and neither the log nor the
/// admin listener contains one.
///
/// The texts are made from a seed, which is printed; `SLUICE_SEED_BASE=n` replays the texts of seed n.
@Suite(.onItsOwnThread) struct TextOracleTests {
  private let texts: HostileTexts
  private let directory: TemporaryDirectory
  private let broker: BrokerProcess

  /// Topic names can't contain control characters, but can contain others that reorder text.
  private let topic, failed, missing, other: String
  private let user, failure, client, payload, key, header: String

  init() throws {
    var texts = HostileTexts()
    (topic, failed, missing, other) = (texts.name(), texts.name(), texts.name(), texts.name())
    user = texts.name()
    (failure, client, payload, key, header) = (
      texts.text(), texts.text(), texts.text(), texts.text(), texts.text()
    )
    self.texts = texts
    directory = try TemporaryDirectory()
    let hash = try #require(PasswordHash(of: "correct horse", cost: .init(logN: 4, r: 1, p: 1)))
    try writeFile(directory.file("users"), Array("\(user):\(hash.text)\n".utf8))
    try writeFile(directory.file("permissions"), Array("* all >\n".utf8))
    try writeFile(directory.file("password"), Array("correct horse\n".utf8))
    broker = try BrokerProcess(
      "--users", directory.file("users"), "--permissions", directory.file("permissions"), "--data",
      directory.file("data"), "--admin", "127.0.0.1:0", "--log-level", "debug")
  }

  private var environment: [String: String] {
    [
      "SLUICE_NAME": client, "SLUICE_USER": user, "SLUICE_PASSWORD_FILE": directory.file("password"),
      "XDG_CONFIG_HOME": directory.file("config"), "NO_COLOR": "1",
    ]
  }

  /// Command lines by command, in order. Each prints as many of the texts as possible, in output and in error messages.
  private var lines: [(command: String, arguments: [[String]])] {
    let file = directory.file
    return [
      ("topic create", [["--storage", "durable", other], ["--replay-records", "1", topic], ["a\u{1B}b"]]),
      (
        "pub",
        [
          [other, payload, "--key", key], [failed, payload], ["--trace", topic, payload],
          [missing + ".\u{9B}", "x"],
        ]
      ),
      (
        "sub",
        [
          [topic, "--until-live"], [topic, "--until-live", "--headers"], [topic, "--until-live", "--json"],
          [topic, "--until-live", "--format", "{topic} {key} {headers} {header:h} {payload}"], [failed],
          [missing, "--until-live"], [topic, "--group", user, "--ack", "explicit", "--count", "1"],
          [topic, "--cursor", client.filter { $0.isLetter } + user, "--until-live"], ["\u{1B}[2J"],
          [topic, "--until-live", "--exec", "exit 1"], ["*", "--for", "50ms"],
        ]
      ),
      ("request", [["replies", payload, "--timeout", "5m"], ["nobody", payload], ["a\u{202E}\n", "x"]]),
      ("reply", [["a\u{1B}", "--exec", "true"], [topic]]),
      ("topic list", [[], ["--names"], ["--json"], ["--settings"]]),
      ("topic show", [[topic], [topic, "--json"], [failed], [missing]]),
      ("topic set", [[topic, "--replay-records", "100"], [missing, "--keep", "1h"]]),
      ("topic connect", [[topic], [missing]]), ("topic disconnect", [[topic], [missing]]),
      ("topic trim", [[topic, "--keep-last", "2"], [missing, "--keep-last", "1"]]),
      ("why", [[topic], [topic, "--json"], [failed], [missing]]),
      ("cursor list", [[], [topic], ["--json"], [missing]]), ("group list", [[], [topic]]),
      ("group show", [[topic, user], [topic, missing]]),
      (
        "cursor move",
        [
          [topic, user, "--to", "earliest"], [topic, missing, "--to", "earliest"],
          [topic, user, "--to", "\u{1B}"],
        ]
      ),
      ("cursor delete", [[topic, missing, "--yes"]]), ("connection list", [[], ["--json"]]),
      ("connection show", [["1"], ["99999"], ["\u{1B}"]]), ("connection close", [["99999"]]),
      ("cluster status", [[]]), ("cluster nodes", [[]]), ("cluster shards", [["--topic", topic]]),
      ("cluster move", [["1", "\u{1B}"]]), ("cluster drain", [["\u{9B}"]]), ("status", [[], ["--json"]]),
      ("top", [["--once"], ["--once", "--json"], ["--count", "2", "--interval", "10ms"]]),
      (
        "context add",
        [
          ["here", "--server", broker.address, "--user", user, "--password-file", file("password")],
          ["\u{1B}"],
        ]
      ),
      ("context list", [[], ["--json"]]), ("context show", [[], ["\u{1B}"]]), ("context use", [["nothere"]]),
      ("context remove", [["here"], ["nothere"]]),
      (
        "user add",
        [
          [user + "2", "--file", file("others"), "--password-file", file("password")],
          ["\u{1B}", "--file", file("others")],
        ]
      ),
      (
        "user passwd",
        [
          [user + "2", "--file", file("others"), "--password-file", file("password")],
          [missing, "--file", file("others"), "--password-file", file("password")],
        ]
      ),
      ("user list", [["--file", file("others")]]),
      (
        "user can",
        [
          [user, "publish", topic, "--permissions", file("permissions"), "--client-id", "\u{1B}c"],
          [failure, "subscribe", missing, "--permissions", file("none\u{1B}")],
          [user, "\u{1B}", topic, "--permissions", file("permissions")],
        ]
      ),
      ("user remove", [[missing, "--file", file("others")], [user + "2", "--file", file("others")]]),
      ("token key", [["--algorithm", "hs256", "--output", file("k.secret")]]),
      (
        "token make",
        [
          [
            "--key", file("k.secret"), "--key-id", "k", "--subject", user, "--for", "1h", "--output",
            file("token"),
          ], ["--key", file("k.secret"), "--key-id", "\u{1B}", "--subject", "s", "--for", "1h"],
        ]
      ),
      (
        "token show",
        [
          ["--file", file("token"), "--key", file("k.secret")], ["--file", file("token"), "--json"],
          [failure],
        ]
      ),
      ("ping", [[], ["--alive"]]), ("bench", [["--records", "10", "--for", "0"]]),
      ("completions", [["bash"], ["\u{1B}"]]),
      ("manual", [["pub"], ["\u{1B}"]]), ("backup", [[file("backup")], [file("backup")]]),
      ("topic complete", [[other], [missing]]), ("topic fail", [[topic, failure], [missing, failure]]),
      ("topic purge", [[topic, "--yes"], [missing, "--yes"]]),
      ("restore", [[file("backup")], [file("none\u{1B}")]]),
      ("topic delete", [[missing, "--yes"], [topic, "--yes"], ["none*.>", "--yes"]]),
      ("store stat", [[file("data")], [file("data"), other], [file("none\u{1B}")]]),
      ("store verify", [[file("data")], [file("data"), "--json"]]),
      ("store export", [[file("data"), file("export")], [file("data"), file("export")]]),
      ("store compact", [[file("data")]]),
      ("store repair", [[file("data"), "--dry-run"]]),
      ("store import", [[file("new"), file("export")], [file("new"), file("users")]]),
    ]
  }

  @Test func everyCommandIsTried() {
    let names = Commands.all.flatMap { kind in
      (kind as? any CommandGroup.Type)?.members.map { $0.page.name } ?? [kind.page.name]
    }
    #expect(Set(lines.map { "sluice \($0.command)" }) == Set(names))
  }

  @Test func noTerminalLogOrPageObeysAPeer() throws {
    func run(_ arguments: String..., input: String = "") throws {
      try broker.run(arguments, input: .bytes(Array(input.utf8)), environment: environment)
    }
    for name in [topic, failed] {
      try run("pub", name, "-q", payload, "--key", key, "--header", "h=\(header)", "--header", "\(header)=x")
    }
    try run("pub", topic, "-q", "bytes")
    try run("topic", "fail", failed, failure)
    // Attached clients, and one whose demand is used up.
    let service = try broker.start(["reply", "replies", "--exec", "cat"], environment: environment)
    let slow = try broker.start(["sub", topic, "--demand", "1", "--from", "new"], environment: environment)
    try eventually("the two subscribers") {
      let process = try broker.start(["topic", "list", "--json"], environment: environment)
      try process.waitForExit()
      let lines = process.standardOutput.lines.filter { !$0.contains("\"subscribers\":0") }
      return lines.count >= 2
    }

    for (command, lines) in lines {
      let words = command.split(separator: " ").map(String.init)
      if command == "store stat" {
        service.stop()
        slow.stop()
        try broker.terminate()
      }
      for line in lines {
        let (output, _) = try TerminalSession.run(
          [BuiltProduct.path("sluice")] + words + line, server: broker.address, environment: environment)
        #expect(
          texts.violation(in: output, hasPayload: ["sub", "request"].contains(command)) == nil,
          "\(command) \(line.map { ShownText.line($0) }): \(ShownText.line(output)); \(texts.seed)")
      }
      if command == "topic fail" { try checkAdminListener() }
    }
    let log = broker.process.standardError.text
    #expect(log.contains("\\u202") || log.contains("\\u206"))
    for line in broker.process.standardError.lines {
      #expect(texts.violation(in: line) == nil, "the log: \(ShownText.line(line)); \(texts.seed)")
    }
  }

  private func checkAdminListener() throws {
    let address = try #require(broker.adminAddress)
    let login = Data("\(user):correct horse".utf8).base64EncodedString()
    func path(_ name: String) -> String {
      name.utf8.map { "%" + String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
    }
    for target in [
      "/metrics", "/api/broker", "/api/topics", "/api/topics/\(path(topic))", "/api/topics/\(path(failed))",
      "/api/topics/\(path(failed))/records", "/api/topics/\(path(missing))", "/api/connections",
      "/api/consumers",
      "/api/problems", "/api/history?topic=\(path(topic))", "/api/history?topic=%1b",
    ] {
      let answer = try RawHTTP.get(address, target, headers: ["Authorization: Basic \(login)"])
      #expect(
        answer.status == 200 || target.contains(path(missing)) || target.contains("history"),
        "\(target): \(answer.text)")
      #expect(
        texts.violation(in: answer.text) == nil, "\(target): \(ShownText.line(answer.text)); \(texts.seed)")
    }
  }
}

/// Texts that would harm a terminal that interprets them.
private struct HostileTexts {
  /// The start of lines that a text forges.
  private static let forged = "FORGED"
  private static let controls = [
    "\u{1B}]0;T\u{7}", "\u{1B}[2J", "\u{1B}c", "\u{9B}31m", "\u{9D}0;T\u{9C}", "\u{85}", "\u{8}", "\u{7F}",
    "\r", "\r\n",
    "\n\(forged)", "\t", "\u{E}", "\u{2028}",
  ]
  private static let orders = [
    "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}", "\u{2068}",
    "\u{2069}",
  ]
  private static let letters = ["a", "z", "é", "漢", "7"]
  /// Control sequences of `sluice` itself and the terminal.
  private static let own = [
    "\u{1B}[K\r\r\n", "\r\n", "\r\u{1B}[K", "\u{1B}[K", "\u{1B}[H", "\u{1B}[J", "\u{1B}[?1049h",
    "\u{1B}[?1049l", "\u{1B}[?25h",
    "\u{1B}[?25l",
  ]

  private var random: SeededRandom
  let seed: String

  init() {
    let given = ProcessInfo.processInfo.environment["SLUICE_SEED_BASE"].flatMap { UInt64($0) }
    let base = given ?? UInt64.random(in: 1...999_999_999)
    seed = "SLUICE_SEED_BASE=\(base) plays the same texts"
    print("Hostile texts: \(seed).")
    random = SeededRandom(seed: base)
  }

  private mutating func pick(_ pieces: [String]) -> String { pieces.randomElement(using: &random)! }

  /// A name of a topic, group or user.
  mutating func name() -> String {
    (0..<4).reduce(into: "n") { name, _ in name += pick(Self.letters) + pick(Self.orders) }
  }

  mutating func text() -> String {
    (0..<12).reduce(into: "x") { text, _ in text += pick(Self.controls + Self.orders + Self.letters) }
  }

  /// The first character that a terminal would interpret, or a line that a peer has forged; nil if there is none.
  ///
  /// - Parameter hasPayload: whether the payload of a record may have several lines.
  func violation(in output: String, hasPayload: Bool = false) -> String? {
    let rest = Self.own.reduce(Array(output.unicodeScalars)) { rest, sequence in
      Self.removing(Array(sequence.unicodeScalars), from: rest)
    }
    if let scalar = rest.first(where: { ShownText.isControl($0) && $0 != "\n" && $0 != "\t" }) {
      return "U+\(String(scalar.value, radix: 16))"
    }
    return !hasPayload && output.contains("\n\(Self.forged)") ? "a line that a peer has begun" : nil
  }

  private static func removing(_ sequence: [Unicode.Scalar], from text: [Unicode.Scalar]) -> [Unicode.Scalar]
  {
    var result: [Unicode.Scalar] = []
    var position = 0
    while position < text.count {
      if text[position...].starts(with: sequence) {
        position += sequence.count
      } else {
        result.append(text[position])
        position += 1
      }
    }
    return result
  }
}
