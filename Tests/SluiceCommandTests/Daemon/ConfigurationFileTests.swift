import Foundation
import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDaemon

@Suite("The daemon's configuration file")
struct ConfigurationFileTests {
  private func file(_ text: String, at path: String = "s.toml") throws(ConfigurationMistakes)
    -> ConfigurationFile
  {
    try ConfigurationFile(path, Array(text.utf8))
  }

  private func settings(
    _ text: String, _ arguments: [String] = [], environment: [String: String] = [:]
  ) throws -> DaemonSettings {
    let parsed = try ArgumentParser(DaemonPage.page()).parse(arguments, environment: { environment[$0] })
    return try DaemonSettings(parsed, file: try file(text))
  }

  @Test("Every setting has a place of its own, and rules have theirs")
  func places() {
    let settings = DaemonSettings.all()
    let keys = settings.compactMap(\.key)
    #expect(Set(keys).count == keys.count)
    #expect(settings.filter { $0.key == nil }.map(\.option.name) == ["topic-rule"])
    #expect(Set(settings.map(\.option.name)).count == settings.count)
    #expect(keys.contains { $0.description == "limits.max-record" })
    #expect(keys.contains { $0.description == "tls.cert" })
    #expect(keys.contains { $0.description == "storage.limit" })
    #expect(keys.contains { $0.description == "listen" })
  }

  /// A valid value of a key other than its default, as written in the file and in the option.
  private static func sample(of option: CommandOption) -> (literal: String, text: String) {
    switch (option.name, option.kind) {
    case ("listen", _): ("[\"127.0.0.1:1\", \"[::1]:2\"]", "127.0.0.1:1,[::1]:2")
    case ("origins", _):
      ("[\"https://a.example\", \"https://b.example\"]", "https://a.example,https://b.example")
    case ("origin-headers", _): ("[\"X-A\", \"X-B\"]", "X-A,X-B")
    case ("admin", _): ("\"off\"", "off")
    case ("memory", _): ("\"7%\"", "7%")
    case ("cluster", _): ("[\"nats://a:1\", \"tls://b:2\"]", "nats://a:1,tls://b:2")
    case ("cluster-peers", _): ("[\"n1.example\", \"*.n.example\"]", "n1.example,*.n.example")
    case ("cluster-replicas", _): ("5", "5")
    case (_, .boolean):
      ("true", ["allow-unauthenticated", "engine-unsafe"].contains(option.name) ? "true" : "on")
    case (_, .count): ("7", "7")
    case (_, .size): ("\"7MiB\"", "7MiB")
    case (_, .time): ("\"7m\"", "7m")
    case (_, .file), (_, .directory): ("\"/a/b\"", "/a/b")
    default:
      ("\"\(option.words.last ?? "x")\"", option.words.last ?? "x")
    }
  }

  @Test("Every key sets what its option sets")
  func everyKey() throws {
    for setting in DaemonSettings.all() {
      guard let key = setting.key else { continue }
      let (literal, text) = Self.sample(of: setting.option)
      let heading = key.section == .general ? "" : "[\(key.section.rawValue)]\n"
      let file = try file("\(heading)\(key.name) = \(literal)\n")
      let value = try #require(file.values.first)
      #expect(file.values.count == 1 && value.option == setting.option.name)
      var arguments = ParsedArguments()
      arguments.add(value.option, value.texts, from: value.origin)
      var settings = DaemonSettings()
      try setting.apply(arguments, &settings)
      #expect(setting.write(settings) == text, "\(key)")
    }
  }

  @Test("Values reach the settings, in whichever way TOML writes them")
  func values() throws {
    let settings = try settings(
      """
      listen = [
        "127.0.0.1:0",  # any port
        'unix:/tmp/x',
      ]
      loops = 0x3
      limits.max-topics = 1_000
      log = { level = "debug", "format" = "json" }
      [topics]
      replay-records = "everything"
      buffer-records = 0
      compact = true
      """)
    #expect(settings.broker.listen == [.host("127.0.0.1", port: 0), .unix("/tmp/x")])
    #expect(settings.broker.loops == 3)
    #expect(settings.broker.limits.topics == 1000)
    #expect(settings.logLevel == .debug && settings.logFormat == .json)
    #expect(settings.broker.topicDefaults.replayRecords == TopicSettings.unlimited)
    #expect(settings.broker.topicDefaults.bufferRecords == 0)
    #expect(settings.broker.topicDefaults.compact == true)
    #expect(try self.settings("").broker.limits.topics == BrokerLimits().topics)
  }

  @Test("Rules come in their order, with the settings that they name")
  func rules() throws {
    let settings = try settings(
      """
      [[rule]]
      pattern = "orders.>"
      flow = "lossless"
      buffer-bytes = "1 MiB"
      sync = "50ms"
      [[rule]]
      pattern = "*"
      replay-records = 5
      auto-delete = true
      """)
    var first = TopicSettings()
    first.flow = .lossless
    first.bufferBytes = 1 << 20
    first.sync = .interval(50)
    var second = TopicSettings(replayRecords: 5)
    second.autoDelete = true
    #expect(
      settings.broker.topicRules == [
        TopicRule(pattern: try TopicPattern("orders.>"), settings: first),
        TopicRule(pattern: try TopicPattern("*"), settings: second),
      ])
  }

  @Test("Options stand before the environment, and that before the file")
  func precedence() throws {
    let text = """
      listen = ["127.0.0.1:1"]
      limits = { max-topics = 1, max-streams = 1, max-cursors = 1 }
      [[rule]]
      pattern = "a"
      flow = "free"
      """
    let environment = ["SLUICED_MAX_TOPICS": "2", "SLUICED_MAX_STREAMS": "2"]
    let settings = try settings(text, ["--max-topics", "3"], environment: environment)
    #expect(settings.broker.limits.topics == 3)
    #expect(settings.broker.limits.streams == 2)
    #expect(settings.broker.limits.cursors == 1)
    #expect(settings.broker.listen == [.host("127.0.0.1", port: 1)])
    #expect(settings.broker.topicRules.count == 1)
    let rules = try self.settings(
      text, environment: ["SLUICED_TOPIC_RULE": "x.> flow=lossless lag=fail, y lag=skip"])
    #expect(rules.broker.topicRules.map(\.pattern.description) == ["x.>", "y"])
    #expect(rules.broker.topicRules.first?.settings.lag == .fail)
  }

  @Test("Names of files are relative to the file")
  func relativeNames() throws {
    let text = """
      listen = ["unix:s.sock", "unix:/s.sock", "127.0.0.1:0"]
      access.users = "users"
      access.token-keys = "../keys"
      tls.cert = "/certs/a.pem"
      storage.data = "data"
      """
    func texts(_ path: String) throws -> [String] { try file(text, at: path).values.flatMap(\.texts) }
    #expect(
      try texts("/etc/sluice/s.toml") == [
        "unix:/etc/sluice/s.sock", "unix:/s.sock", "127.0.0.1:0", "/etc/sluice/users",
        "/etc/sluice/../keys", "/certs/a.pem", "/etc/sluice/data",
      ])
    #expect(try texts("s.toml").contains("users"))
    #expect(try texts("./s.toml").contains("./users"))
  }

  @Test(
    "A mistake is told with its place, what is wrong and what to do",
    arguments: [
      ("max-record = \"1MiB\"", "s.toml:1:1: max-record: there is no such key; write max-record in [limits]"),
      ("\n\n  lisen = []", "s.toml:3:3: lisen: there is no such key; did you mean listen?"),
      ("limits = 3", "s.toml:1:1: limits: is a section; write [limits], and its keys in the lines after it"),
      ("[limit]\nx = 1", "s.toml:1:2: limit: there is no such section; did you mean [limits]?"),
      ("[rules]\nx = 1", "s.toml:1:2: rules: there is no such section; did you mean [[rule]]?"),
      ("[tsl]", "s.toml:1:2: tsl: there is no such section; did you mean [tls]?"),
      (
        "[nonsense]", "s.toml:1:2: nonsense: there is no such section; there are listen, loops, admin"
      ),
      (
        "[limits]\nmax-tpics = 1",
        "s.toml:2:1: limits.max-tpics: there is no such key; did you mean max-topics?"
      ),
      ("tls-cert = \"c\"", "s.toml:1:1: tls-cert: there is no such key; write cert in [tls]"),
      ("[tls]\ntls-cert = \"c\"", "s.toml:2:1: tls.tls-cert: there is no such key; write cert in [tls]"),
      (
        "[log]\nlisten = []",
        "s.toml:2:1: log.listen: there is no such key; write listen in front of all sections"
      ),
      ("[log]\nzzz = 1", "s.toml:2:1: log.zzz: there is no such key; there are level, format"),
      ("[log]\nlevel = \"wrning\"", "s.toml:2:1: log.level: there is no 'wrning'; did you mean 'warning'?"),
      ("log.level = 3", "s.toml:1:5: log.level: is a whole number, and must be a text, like \"info\""),
      ("listen = \"a:1\"", "s.toml:1:1: listen: is a text, and must be a list of texts"),
      ("listen = [\"a:1\", 5]", "s.toml:1:1: listen: is a whole number, and must be a text"),
      ("listen = []", "s.toml:1:1: listen: the list is empty"),
      ("listen = [\"nowhere\"]", "s.toml:1:1: listen: 'nowhere' is not an address"),
      ("loops = 0", "s.toml:1:1: loops: 0 isn't between 1 and 1024"),
      ("loops = \"two\"", "s.toml:1:1: loops: is a text, and must be a whole number, like 4 or \"auto\""),
      ("loops = 1.5", "s.toml:1:1: loops: is a number with a fraction, and must be a whole number"),
      (
        "[limits]\nmax-topics = \"1k\"",
        "s.toml:2:1: limits.max-topics: is a text, and must be a whole number, like 100000"
      ),
      ("[limits]\nmax-topics = -1", "s.toml:2:1: limits.max-topics: -1 is negative"),
      (
        "[limits]\nmax-record = 64",
        "s.toml:2:1: limits.max-record: is a whole number, and must be a text, like \"1MiB\""
      ),
      ("[limits]\nmax-record = \"64 parsecs\"", "s.toml:2:1: limits.max-record: '64 parsecs' isn't a size"),
      (
        "[limits]\ndrain = 2020-01-01", "s.toml:2:1: limits.drain: is a time, and must be a text, like \"5s\""
      ),
      ("[topics]\ncompact = \"on\"", "s.toml:2:1: topics.compact: is a text, and must be true or false"),
      ("[topics]\nsync = \"0\"", "s.toml:2:1: topics.sync: '0' is too short; write always, or at least 1ms"),
      ("[access]\nusers = \"\"", "s.toml:2:1: access.users: the name of the file is empty"),
      (
        "[rule]\npattern = \"a\"",
        "s.toml:1:2: rule: write [[rule]], in double brackets"
      ),
      ("rule = [1]", "s.toml:1:9: rule: write [[rule]], and its keys in the lines after it"),
      (
        "[[rule]]\nflow = \"free\"",
        "s.toml:1:1: rule: has no pattern; add one, like pattern ="
      ),
      ("[[rule]]\npattern = \"a\"", "s.toml:1:1: rule: sets nothing; add settings like flow = \"lossless\""),
      (
        "[[rule]]\npattern = \"a.>.b\"\nflow = \"free\"",
        "s.toml:2:1: rule.pattern: \"a.>.b\" isn't a pattern"
      ),
      ("[[rule]]\npattern = 3", "s.toml:2:1: rule.pattern: is a whole number, and must be a text"),
      (
        "[[rule]]\npattern = \"a\"\nflw = \"free\"",
        "s.toml:3:1: rule.flw: there is no such key; did you mean flow?"
      ),
      (
        "[[rule]]\npatern = \"a\"\nflow = \"free\"",
        "s.toml:2:1: rule.patern: there is no such key; did you mean pattern?"
      ),
      (
        "[[rule]]\npattern = \"a\"\nflow = \"fre\"",
        "s.toml:3:1: rule.flow: there is no 'fre'; did you mean 'free'?"
      ),
      (
        "loops = 1\nloops = 2",
        "s.toml:2:9: cannot redefine existing integer 'loops'; write each key and each section once"
      ),
      (
        "[log]\n[log]",
        "s.toml:2:1: cannot redefine existing table 'log'; write each key and each section once"
      ),
      (
        "[limits]\nmax-record = 64MiB",
        "s.toml:2:16: expected digit, saw 'M'; a text needs quotes, like \"64MiB\""
      ),
      ("log.level = info", "s.toml:1:"),
      ("\u{7}", "s.toml:1:1: "),
      ("a = [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "s.toml:1:21: exceeded maximum nested value depth of 16"),
      ("\"a\\u0007b\" = 1", "s.toml:1:1: a\\u0007b: there is no such key"),
    ])
  func mistakes(text: String, beginning: String) {
    do {
      _ = try file(text)
      Issue.record("taken")
    } catch {
      #expect(error.lines.first?.hasPrefix(beginning) == true, "\(error.lines)")
    }
  }

  @Test("All mistakes of a file are told at once, in their order")
  func allMistakes() {
    do {
      _ = try file("b = 1\na = 1\n[log]\nlevel = 1\n[limits]\ndrain = \"x\"\n")
      Issue.record("taken")
    } catch {
      #expect(
        error.lines.map { $0.prefix { $0 != " " } } == [
          "s.toml:1:1:", "s.toml:2:1:", "s.toml:4:1:", "s.toml:6:1:",
        ])
    }
  }

  private func places(_ text: String) -> [String] {
    do {
      _ = try file(text)
      return []
    } catch {
      return error.lines.map { String($0.prefix { $0 != " " }) }
    }
  }

  @Test(
    "Mistakes that the parser stops at don't hide those behind them",
    arguments: [
      // Integers that are too large, and invalid settings.
      (
        "loops = 99999999999999999999\nb = 1\n[limits]\nmax-topics = 99999999999999999999\ndrain = \"x\"\n"
          + "max-streams = -99999999999999999999\n",
        ["s.toml:1:", "s.toml:2:1:", "s.toml:4:", "s.toml:5:1:", "s.toml:6:"]
      ),
      // Texts without quotes, unterminated texts, keys without values.
      (
        "[limits]\nmax-record = 64MiB\ndrain = \"5s\nmax-topics\n[log]\nlevel = info\nformat = 3",
        ["s.toml:2:", "s.toml:3:", "s.toml:4:", "s.toml:6:", "s.toml:7:1:"]
      ),
      // A list over several lines is skipped as a whole if it starts with an error.
      (
        "listen = [99999999999999999999,\n  \"b\",\n]\nloops = 99999999999999999999",
        ["s.toml:1:", "s.toml:4:"]
      ),
      ("listen = [\n  99999999999999999999,\n  \"127.0.0.1:1\",\n]\nb = 1", ["s.toml:2:", "s.toml:5:1:"]),
      // Duplicates; each is reported.
      ("loops = 1\nloops = 2\nloops = 3\nb = 1", ["s.toml:2:", "s.toml:3:", "s.toml:4:1:"]),
      // The keys of a section with an invalid heading belong to no other section.
      ("[log]\nlevel = \"info\"\n[limits\nmax-topics = 3\n[tls]\nb = 1", ["s.toml:3:", "s.toml:6:1:"]),
      // After an unclosed list the next entries can't be recognised.
      ("b = 1\nlisten = [\"a\",\nloops = 2\nc = 1", ["s.toml:1:1:", "s.toml:3:"]),
    ])
  func mistakesBehindMistakes(text: String, expected: [String]) {
    let found = places(text)
    #expect(found.count == expected.count, "\(found)")
    for (found, expected) in zip(found, expected) { #expect(found.hasPrefix(expected), "\(found)") }
  }

  @Test("A file that is nothing but mistakes is given up after some")
  func manyMistakes() {
    let text = String(repeating: "a = 99999999999999999999\n", count: 1000)
    #expect(places(text).count == TOMLRecovery.most)
  }

  @Test("All limits that are out of their range are told")
  func severalLimits() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("sluiced.toml")
    try "[limits]\nmax-record = \"300MiB\"\nmax-connections = 99999999\n".write(
      toFile: path, atomically: true, encoding: .utf8)
    let source = SettingsSource(arguments: ParsedArguments(), path: path)
    do {
      _ = try source.settings()
      Issue.record("taken")
    } catch {
      #expect(error.lines.count == 2, "\(error.lines)")
    }
  }

  @Test("What can't be read as text, is too long or nests too deep is refused")
  func limits() {
    func line(_ bytes: [UInt8]) -> String? {
      do {
        _ = try ConfigurationFile("s.toml", bytes)
        return nil
      } catch {
        return error.lines.first
      }
    }
    #expect(line([0xFF, 0xFE, 0x00]) != nil)
    #expect(
      line(Array("# ".utf8) + [UInt8](repeating: 0x20, count: 1 << 20))
        == "s.toml: the file is longer than 1048576 bytes")
    #expect(line([UInt8](repeating: 0x20, count: 1 << 20)) == nil)
    let dots = String(repeating: "a.", count: 200)
    #expect(
      line(Array("\(dots)a = 1".utf8))
        == "s.toml:1:258: there are more than 128 dots in this line; write it on several")
    #expect(line(Array("# \(dots)".utf8)) == nil)
  }

  @Test(
    "What doesn't go together is told by its place, in the file's words",
    arguments: [
      (
        "[topics]\nstorage = \"durable\"",
        "s.toml:2:1: topics.storage: durable topics need a directory; name one with storage.data DIR"
      ),
      (
        "[[rule]]\npattern = \"b\"\nflow = \"free\"\n[[rule]]\npattern = \"a\"\nstorage = \"durable\"",
        "s.toml:4:1: rule: 'a storage=durable': durable topics need a directory"
      ),
      (
        "[limits]\nmax-record = \"300MiB\"", "s.toml:2:1: limits.max-record: 314572800 isn't in 1...268435456"
      ),
      (
        "listen = [\"tls://127.0.0.1:0\"]",
        "s.toml:1:1: listen: tls://127.0.0.1:0 needs a certificate and its key; name them with tls.cert"
      ),
      (
        "[storage]\nlimit = \"1GiB\"",
        "s.toml:2:1: storage.limit: needs a directory for durable topics; name one with storage.data DIR"
      ),
      (
        "[access]\nauth = true",
        "s.toml:2:1: access.auth: no client could authenticate; name access.users FILE or access.token-keys DIR"
      ),
      (
        "[tls]\nkey = \"k\"",
        "s.toml:2:1: tls.key: no address has TLS; add one with listen tls://HOST:PORT"
      ),
    ])
  func contradictions(text: String, beginning: String) {
    let error = #expect(throws: UsageError.self) { try settings(text) }
    #expect(error?.description.hasPrefix(beginning) == true, "\(error?.description ?? "")")
  }

  @Test(
    "A mistake of the environment is told by its variable, one of an option by that, whatever the file says")
  func blame() throws {
    let text = "listen = [\"127.0.0.1:0\"]"
    let ofOption = #expect(throws: UsageError.self) { try settings(text, ["--storage", "durable"]) }
    #expect(
      ofOption?.description.hasPrefix("--storage: durable topics need a directory; name one with --data")
        == true)
    let ofVariable = #expect(throws: UsageError.self) {
      try settings(text, environment: ["SLUICED_STORAGE": "durable"])
    }
    #expect(ofVariable?.description.hasPrefix("SLUICED_STORAGE: durable topics need a directory") == true)
  }

  @Test("Who says as many connections as usual is given fewer where there can't be as many")
  func usualConnections() throws {
    let settings = try settings("loops = 2\nlimits.max-connections = 16384")
    #expect(try SystemFit(settings, descriptors: 1_024, memory: nil).notes.count == 1)
  }
}
