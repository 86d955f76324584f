import SluiceClient
import SluiceCommand
import SluiceIO
import Testing

@testable import SluiceTool

@Suite("The commands' arguments")
struct CommandTests {
  private func command(_ arguments: String...) throws(UsageError) -> any Command {
    var name = ""
    guard case .run(let command, _) = try CommandLineChoice.read(arguments, naming: &name) else {
      throw UsageError("prints")
    }
    return command
  }

  private func text(_ arguments: [String]) throws -> String {
    var name = ""
    guard case .print(let text) = try CommandLineChoice.read(arguments, naming: &name) else { return "" }
    return text
  }

  @Test("pub takes messages, a file or standard input, in records of several kinds")
  func pub() throws {
    let plain = try #require(try command("pub", "t") as? PubCommand)
    #expect(plain.source == .standardInput)
    #expect(plain.framing == .delimited(10))
    #expect(plain.acknowledgement == .received)
    #expect(plain.ending == nil)
    let full = try #require(
      try command(
        "pub", "t", "a", "b", "--key", "k", "--header", "n=v=w", "--header", "m=", "--rate", "2k", "--ack",
        "none",
        "--fail", "over", "--quiet") as? PubCommand)
    #expect(full.source == .messages([Array("a".utf8), Array("b".utf8)]))
    #expect(full.key == Array("k".utf8))
    #expect(full.headers == [.init("n", "v=w"), .init("m", "")])
    #expect(full.rate == 2000)
    #expect(full.acknowledgement == .none)
    #expect(full.ending == .failure("over"))
    let framed = try #require(try command("pub", "t", "--frames", "--file", "f", "--complete") as? PubCommand)
    #expect(framed.framing == .lengthPrefixed)
    #expect(framed.source == .file("f"))
    #expect(framed.ending == .finished)
    #expect((try command("pub", "t", "--delimiter", "nul") as? PubCommand)?.framing == .delimited(0))
    #expect((try command("pub", "t", "--delimiter", "none") as? PubCommand)?.framing == .whole)
  }

  @Test("request takes a message or standard input, reply a command")
  func requests() throws {
    let plain = try #require(try command("request", "t") as? RequestCommand)
    #expect(plain.payload == nil && plain.timeout == .seconds(5) && plain.key == nil && plain.headers == [])
    let full = try #require(
      try command("request", "t", "m", "--timeout", "200ms", "--key", "k", "--header", "n=v")
        as? RequestCommand)
    #expect(full.payload == Array("m".utf8) && full.timeout == .milliseconds(200))
    #expect(full.key == Array("k".utf8) && full.headers == [.init("n", "v")])
    #expect(throws: UsageError.self) { try command("request", "a.*") }
    #expect(throws: UsageError.self) { try command("request", "t", "a", "b") }
    let reply = try #require(try command("reply", "t", "--exec", "cat", "--concurrent", "8") as? ReplyCommand)
    #expect(reply.topic == "t" && reply.shell == "cat" && reply.concurrent == 8)
    #expect(throws: UsageError("--exec is missing; name the command that writes the replies")) {
      try command("reply", "t")
    }
  }

  @Test("sub requests by window for people, one at a time for commands, and what is asked for otherwise")
  func demand() throws {
    func demand(_ options: String...) throws -> DemandRule? {
      let arguments = ["sub", "t"] + options
      var name = ""
      guard case .run(let command, _) = try CommandLineChoice.read(arguments, naming: &name) else {
        return nil
      }
      return (command as? SubCommand)?.demand
    }
    #expect(try demand() == .window)
    #expect(try demand("--exec", "true") == .rounds(of: 1))
    #expect(try demand("--exec", "true", "--demand", "5") == .rounds(of: 5))
    #expect(try demand("--demand", "1") == .rounds(of: 1))
    #expect(try demand("--demand", "unlimited") == .unlimited)
  }

  @Test("sub wants some records, and goes on where a cursor stands")
  func filtersAndCursors() throws {
    let plain = try #require(try command("sub", "t") as? SubCommand)
    #expect(plain.filter.isEmpty && plain.cursor == nil)
    let full = try #require(
      try command(
        "sub", "t", "--header", "a=1=2", "--has-header", "b", "--key-prefix", "k", "--header-prefix", "c=",
        "--has-key", "--key", "key", "--cursor", "billing") as? SubCommand)
    #expect(
      full.filter.conditions
        == (.key(equals: "key") && .key(hasPrefix: "k") && .hasKey && .header("a", equals: "1=2")
        && .header("c", hasPrefix: "") && .hasHeader("b")).conditions)
    #expect(full.cursor == .init("billing", commit: .manual))
    let automatic = try command("sub", "t", "--cursor", "c", "--commit", "auto") as? SubCommand
    #expect(automatic?.cursor == .init("c", commit: .automatic))
    let move = try #require(try command("cursor", "move", "t", "c", "--to", "last:3") as? CursorMoveCommand)
    #expect(move.topic == "t" && move.name == "c" && move.start == .last(3))
  }

  @Test(
    "A durable topic that keeps a time keeps all of it; one in memory is bounded by the broker's defaults")
  func keeping() throws {
    func settings(_ options: String...) throws(UsageError) -> TopicSettings? {
      var name = ""
      guard
        case .run(let command, _) = try CommandLineChoice.read(
          ["topic", "create", "t"] + options, naming: &name)
      else { return nil }
      guard case .topic(let settings, _)? = (command as? TopicCreateCommand)?.target else { return nil }
      return settings
    }
    let day: UInt64 = 86_400_000
    var durable = TopicSettings(
      replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited, replayAge: day)
    durable.storage = .durable
    durable.sync = .always
    #expect(try settings("--storage", "durable", "--sync", "always", "--keep", "24h") == durable)
    durable.replayBytes = 1 << 30
    #expect(
      try settings("--keep", "1d", "--storage", "durable", "--sync", "always", "--replay-bytes", "1GiB")
        == durable)
    #expect(try settings("--keep", "24h") == TopicSettings(replayAge: day))
    #expect(try settings("--keep", "everything")?.replayAge == TopicSettings.unlimited)
    var interval = TopicSettings()
    interval.storage = .durable
    interval.sync = .interval(50)
    #expect(try settings("--storage", "durable", "--sync", "50ms") == interval)
    #expect(throws: UsageError("--keep and --replay-age exclude each other; give one of them")) {
      try settings("--keep", "1h", "--replay-age", "2h")
    }
    #expect(throws: UsageError.self) { try settings("--keep", "long") }
    #expect(throws: UsageError.self) { try settings("--sync", "0ms") }
  }

  @Test(
    "sub takes a pattern for one by its wildcards", arguments: [("t", false), ("t.*", true), (">", true)])
  func patterns(text: String, isPattern: Bool) throws {
    var name = ""
    guard
      case .run(let command, _) = try CommandLineChoice.read(["sub", text, "--from", "new"], naming: &name)
    else { return #expect(Bool(false)) }
    let plan = (command as? SubCommand)?.plan
    #expect(plan?.topic == text)
    #expect(plan?.isPattern == isPattern)
    #expect(plan?.start == .new)
  }

  @Test(
    "Starts",
    arguments: [
      ("replay", SubscriptionPlan.Start.replay), ("new", .new), ("earliest", .earliest),
      ("last:10", .last(10)),
      ("offset:0", .offset(0)),
      ("time:2026-02-03T04:05:06Z", .time(Timestamp(millisecondsSince1970: 1_770_091_506_000))),
    ])
  func starts(text: String, start: SubscriptionPlan.Start) throws {
    #expect(try SubCommand.start(text) == start)
  }

  @Test("A start so long ago is that long before now")
  func startAgo() throws {
    guard case .time(let hour) = try SubCommand.start("time:-1h"),
      case .time(let day) = try SubCommand.start("time:-1d")
    else {
      Issue.record("not a time")
      return
    }
    // Both were read within the same hour.
    #expect((Duration.seconds(79_200)...Duration.seconds(86_400)).contains(hour - day))
  }

  @Test(
    "What isn't a start is refused",
    arguments: ["", "last", "last:", "last:x", "new:1", "offset:-1", "time:", "time:-", "time:now", "Replay"])
  func notStarts(text: String) {
    #expect(throws: ValueError.self) { try SubCommand.start(text) }
  }

  @Test(
    "Wrong usage is explained in one line",
    arguments: [
      ([], "no command is given"), (["pbu"], "there is no command 'pbu'; did you mean sluice pub?"),
      (["--sever", "x", "ping"], "there is no option --sever; did you mean --server?"),
      (["sub", "t", "--header", "kind"], "--header: 'kind' isn't a header; write NAME=VALUE"),
      (["sub", "t", "--header-prefix", "=x"], "--header-prefix: '=x' isn't a header"),
      (
        ["sub", "t", "--key", String(repeating: "k", count: 1_025)],
        "condition 1 of the filter has a text of 1025 bytes"
      ),
      (["sub", "t", "--cursor", "a b"], "\"a b\" isn't a cursor name"),
      (["sub", "t.*", "--cursor", "c"], "--cursor is for one subscriber of one topic"),
      (["sub", "t", "--commit", "auto"], "--commit needs --cursor NAME"),
      (["sub", "t", "--cursor", "c", "--commit", "never"], "--commit: there is no 'never'"),
      (["cursor"], "sluice cursor needs a command"), (["group", "show"], "show needs TOPIC"),
      (["cursor", "move", "t", "c"], "no position is given"),
      (["cursor", "move", "t", "c", "--to", "there"], "--to: 'there' isn't a start"),
      (["cursor", "delete", "t", ""], "a cursor name can't be empty"),
      (["pub"], "pub needs TOPIC"), (["pub", "a.*", "x"], "\"a.*\" isn't a topic name"),
      (["sub", "a.>.b"], "\"a.>.b\" isn't a pattern: > can only be its last token"),
      (["sub", ""], "a topic name can't be empty"),
      (["sub", "t", "u"], "'u' is one argument too many"),
      (["sub", "t", "--raw", "--json"], "--raw and --json exclude each other"),
      (["sub", "t", "--demand", "0"], "--demand: 0 is too small; it must be at least 1"),
      (["sub", "t", "--count", "-1"], "--count: "),
      (["pub", "t", "a", "--file", "f"], "give either --file or messages"),
      (["pub", "t", "a", "--frames"], "--frames is for records from an input"),
      (["pub", "t", "--header", "=v"], "--header: '=v' isn't a header"),
      (["pub", "t", "--complete", "--fail", "m"], "--complete and --fail exclude"),
      (["topic"], "sluice topic needs a command"),
      (["topic", "shw", "t"], "there is no command 'shw'; did you mean sluice topic show?"),
      (["topic", "fail", "t"], "fail needs MESSAGE"),
      (["--server", "x:", "ping"], "--server: 'x:' is not an address"),
      (["bench", "--size", "4"], "--size: 4 isn't between 8B and 256MiB"),
      (["store"], "sluice store needs a command"), (["store", "verify"], "verify needs DIR"),
      (["store", "verify", "d", "e"], "'e' is one argument too many"),
      (["store", "repiar", "d"], "there is no command 'repiar'; did you mean sluice store repair?"),
      (["store", "repair", "d", "--dry"], "there is no option --dry; did you mean --dry-run?"),
      (["pub", "t", "--tls-ca", "f"], "--tls-ca: 127.0.0.1:7420 has no TLS"),
    ])
  func complaints(arguments: [String], beginning: String) {
    var name = ""
    do {
      _ = try CommandLineChoice.read(arguments, naming: &name)
      Issue.record("taken")
    } catch {
      #expect(error.description.hasPrefix(beginning))
      #expect(!error.description.contains("\n"))
    }
  }

  @Test("A store's commands take a directory, and what they read or write")
  func stores() throws {
    let export = try #require(
      try command("store", "export", "d", "f", "--topic", "a", "--topic", "b", "--quiet")
        as? StoreExportCommand)
    #expect(
      export.directory == "d" && export.target.file == "f" && export.topics == ["a", "b"] && export.isQuiet)
    let plain = try #require(try command("store", "import", "d") as? StoreImportCommand)
    #expect(plain.file == nil && !plain.isReplacing)
    let full = try #require(try command("store", "import", "d", "-", "--replace") as? StoreImportCommand)
    #expect(full.file == nil && full.isReplacing)
    #expect((try command("store", "stat", "d", "t", "--json") as? StoreStatCommand)?.topic == "t")
    #expect((try command("store", "repair", "d", "--dry-run") as? StoreRepairCommand)?.isDryRun == true)
    #expect((try command("store", "verify", "d", "--progress") as? StoreVerifyCommand)?.saysProgress == true)
  }

  @Test("Servers can be named in front of the command and behind it; the last ones count")
  func server() throws {
    func servers(_ arguments: String...) throws -> [UInt16]? {
      var name = ""
      guard case .run(_, let access) = try CommandLineChoice.read(arguments, naming: &name) else {
        return nil
      }
      return access.servers.map { if case .host("h", let port) = $0 { port } else { 0 } }
    }
    #expect(try servers("--server", "h:1", "ping") == [1])
    #expect(try servers("ping", "--server", "h:2") == [2])
    #expect(try servers("--server", "h:1", "ping", "--server=h:2") == [2])
    #expect(try servers("--server", "h:1", "topic", "--server", "h:3", "list") == [3])
    #expect(try servers("ping", "--server", "h:2,h:3", "--server", "h:1") == [2, 3, 1])
    #expect(
      throws: UsageError(
        "--server: '' is not an address: there is no port; write HOST:PORT, for example localhost:7420")
    ) {
      try servers("ping", "--server", "h:2,")
    }
  }

  @Test("A lost connection is made again for a minute, for ever, or not at all")
  func reconnecting() throws {
    func policy(_ arguments: String...) throws -> ReconnectPolicy? {
      var name = ""
      guard case .run(let command, _) = try CommandLineChoice.read(arguments, naming: &name) else {
        return nil
      }
      return (command as? PubCommand)?.persistence.policy ?? (command as? SubCommand)?.persistence.policy
    }
    for command in ["pub", "sub"] {
      #expect(try policy(command, "t")?.giveUpAfter == .seconds(60))
      #expect(try policy(command, "t", "--reconnect") != nil)
      #expect(try policy(command, "t", "--reconnect")?.giveUpAfter == nil)
      #expect(try policy(command, "t", "--no-reconnect") == nil)
      #expect(throws: UsageError.self) { try policy(command, "t", "--reconnect", "--no-reconnect") }
    }
  }

  @Test("Every command explains itself with an example that it would take")
  func help() throws {
    var pages = Commands.all.map { $0.page }
    pages += TopicCommand.members.map { $0.page }
    pages += CursorCommand.members.map { $0.page }
    pages += StoreCommand.members.map { $0.page }
    for page in pages {
      let words = page.name.split(separator: " ").dropFirst().map(String.init)
      let help = try text(words + ["--help"])
      #expect(help.hasPrefix("\(page.name): \(page.summary)"))
      #expect(
        help.split(separator: "\n").filter { !$0.hasPrefix("  sluice") && !$0.contains("|") }.allSatisfy {
          $0.count <= 88
        })
      #expect(!page.examples.isEmpty)
      #expect(try text(["help"] + words.prefix(1)).contains("Usage: sluice \(words[0])"))
    }
    #expect(try text(["--help"]).contains("Exit codes"))
    #expect(try text(["--version"]) == "sluice \(Version.text)\n")
  }

  @Test("sub is a member of a group with all that belongs to it, and with nothing that doesn't")
  func group() throws {
    func group(_ options: String...) throws -> GroupChoice? {
      var name = ""
      guard case .run(let command, _) = try CommandLineChoice.read(["sub", "t"] + options, naming: &name)
      else {
        return nil
      }
      return (command as? SubCommand)?.group
    }
    #expect(try group() == nil)
    #expect(try group("--group", "g")?.options == GroupOptions())
    let full = try group(
      "--group", "g", "--ack", "explicit", "--order", "by-key", "--deadline", "30s", "--deliveries", "3",
      "--dead-letters", "dead")
    #expect(full?.name == "g")
    #expect(
      full?.options
        == GroupOptions(
          acknowledgement: .explicit, order: .byKey, deadline: .seconds(30), deliveries: 3,
          deadLetters: "dead"))
    for wrong in [
      ["--ack", "explicit"], ["--deadline", "1s"], ["--dead-letters", "d"], ["--group", "g", "--until-live"],
      ["--group", "g", "--lag", "skip"], ["--group", "g", "--ack", "maybe"],
      ["--group", "g", "--deliveries", "0"],
    ] {
      var name = ""
      #expect(throws: UsageError.self) { try CommandLineChoice.read(["sub", "t"] + wrong, naming: &name) }
    }
  }
}
