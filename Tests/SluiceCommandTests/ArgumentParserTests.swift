import SluiceCommand
import Testing

@Suite("Reading a command line")
struct ArgumentParserTests {
  private let page = CommandPage(
    "prog cmd", summary: "for tests", operands: [Operand("TOPIC"), Operand("MESSAGE", .repeated)],
    options: [
      CommandOption("count", letter: "n", value: "N", help: ""),
      CommandOption("header", value: "NAME=VALUE", help: "", isRepeatable: true, environment: "PROG_HEADER"),
      CommandOption("quiet", letter: "q", help: ""),
      CommandOption("verbose", letter: "v", help: ""),
      CommandOption("compact", value: "BOOL", bare: "true", help: ""),
      CommandOption("later", value: "X", help: "", unavailable: "--later: not in this version"),
    ])

  private func parse(_ arguments: String..., environment: [String: String] = [:]) throws(UsageError)
    -> ParsedArguments
  {
    try ArgumentParser(
      page, shared: [CommandOption("server", value: "ADDR", help: "", environment: "PROG_SERVER")]
    )
    .parse(arguments, environment: { environment[$0] })
  }

  @Test("Options and operands come in any order, with values behind a space or an equals sign")
  func anyOrder() throws {
    let parsed = try parse("--count", "3", "t", "--header=a=b", "m", "--quiet", "--header", "c=d", "n")
    #expect(parsed.operands == ["t", "m", "n"])
    #expect(parsed.text("count") == "3")
    #expect(parsed.texts("header") == ["a=b", "c=d"])
    #expect(parsed.has("quiet"))
  }

  @Test("Letters stand for options, together and with values")
  func letters() throws {
    let parsed = try parse("-qv", "t", "-n", "3")
    #expect(parsed.has("quiet") && parsed.has("verbose") && parsed.text("count") == "3")
    #expect(try parse("-n5", "t").text("count") == "5")
    #expect(try parse("-qn5", "t").text("count") == "5")
    #expect(try parse("t", "-", "--", "-n").operands == ["t", "-", "-n"])
    for wrong in ["-x", "-qx", "-q=1", "-n"] {
      #expect(throws: UsageError.self, "\(wrong)") { try parse("t", wrong) }
    }
  }

  @Test("An option that isn't repeatable takes one value, and one without a value may be repeated")
  func onceOnly() throws {
    for twice in [["--count", "1", "--count", "1"], ["-n1", "--count=2"]] {
      #expect(throws: UsageError("--count is given twice; give it once")) {
        try ArgumentParser(page).parse(["t"] + twice)
      }
    }
    #expect(try parse("t", "--quiet", "-q").has("quiet"))
  }

  @Test("Bytes that aren't UTF-8 are taken where an option or operand is bytes, and refused elsewhere")
  func bytes() throws {
    let page = CommandPage(
      "prog cmd", summary: "", operands: [Operand("TOPIC"), Operand("MESSAGE", .repeated, takesBytes: true)],
      options: [
        CommandOption("key", letter: "k", value: "KEY", help: "", takesBytes: true),
        CommandOption("user", value: "NAME", help: ""),
      ])
    let wild: [UInt8] = [0x61, 0xFF, 0x62]
    func argument(_ prefix: String) -> Argument { Argument(Array(prefix.utf8) + wild) }
    let parser = ArgumentParser(page)
    for key in [["--key", argument("")], [argument("--key=")], [argument("-k")]] {
      let parsed = try parser.parse(["t", argument("")] + key)
      #expect(parsed.bytes("key") == wild)
      #expect(parsed.operandArguments[1].bytes == wild)
    }
    #expect(throws: UsageError("--user: 'a\\xffb' isn't UTF-8; give it as text")) {
      try parser.parse(["t", "--user", argument("")])
    }
    #expect(throws: UsageError("TOPIC: 'a\\xffb' isn't UTF-8; give it as text")) {
      try parser.parse([argument("")])
    }
    #expect(throws: UsageError.self) { try parser.parse(["t", argument("--")]) }
    #expect(throws: UsageError.self) { try parser.parse(["t", argument("-")]) }
  }

  @Test("Everything behind two dashes is an operand, and a dash alone is one anywhere")
  func dashes() throws {
    #expect(try parse("t", "-", "--", "--count", "-x").operands == ["t", "-", "--count", "-x"])
  }

  @Test("An option takes the next argument as its value, whatever it looks like, and may take an empty one")
  func valuesAreTakenAsTheyAre() throws {
    #expect(try parse("t", "--count", "-5").text("count") == "-5")
    #expect(try parse("t", "--count=").text("count") == "")
  }

  @Test("An option that means something without a value takes one only behind an equals sign")
  func bareValues() throws {
    let parsed = try parse("--compact", "t")
    #expect(parsed.text("compact") == "true")
    #expect(parsed.operands == ["t"])
    #expect(try parse("t", "--compact=false").text("compact") == "false")
    #expect(HelpText.render(page).contains("  --compact[=BOOL]"))
  }

  @Test("--help is answered even where something else is missing or wrong behind it")
  func help() throws {
    #expect(try parse("--help").wantsHelp)
    #expect(try parse("-h", "--nonsense").wantsHelp)
    #expect(try parse("t", "--", "--help").wantsHelp == false)
  }

  @Test("The environment stands in for an option that wasn't given, and is split where it may be repeated")
  func environment() throws {
    let environment = ["PROG_SERVER": "from-env", "PROG_HEADER": "a=1,b=2 c=3"]
    let parsed = try parse("t", environment: environment)
    #expect(parsed.text("server") == "from-env")
    #expect(parsed.texts("header") == ["a=1", "b=2", "c=3"])
    #expect(try parse("t", "--server", "given", environment: environment).texts("server") == ["given"])
    #expect(try parse("t", environment: ["PROG_SERVER": ""]).has("server") == false)
  }

  @Test("A value that can't be read is blamed on the option, or on the variable that it came from")
  func blame() throws {
    let read: (String) throws(ValueError) -> Int = { text throws(ValueError) in
      throw ValueError("'\(text)' is bad")
    }
    #expect(throws: UsageError("--server: 'x' is bad")) {
      try parse("t", "--server", "x").value("server", read)
    }
    #expect(throws: UsageError("PROG_SERVER: 'x' is bad")) {
      try parse("t", environment: ["PROG_SERVER": "x"]).value("server", read)
    }
  }

  @Test(
    "Wrong usage is explained in one line",
    arguments: [
      ([], "cmd needs TOPIC"),
      (["t", "--cuont", "3"], "there is no option --cuont; did you mean --count?"),
      (["t", "--xyzzy"], "there is no option --xyzzy; write an argument that begins with a dash after --"),
      (["t", "-5"], "there is no option -5; write an argument that begins with a dash after --"),
      (["t", "--count"], "--count needs a value: --count N"),
      (["t", "--quiet=yes"], "--quiet takes no value"),
      (["t", "--later", "x"], "--later: not in this version"),
    ])
  func complaints(arguments: [String], expected: String) throws {
    do {
      _ = try ArgumentParser(page).parse(arguments)
      Issue.record("taken")
    } catch {
      #expect(error.description == expected)
    }
  }

  @Test("Too many operands are refused where they are counted")
  func tooMany() {
    let page = CommandPage("one", summary: "", operands: [Operand("A"), Operand("B", .optional)])
    #expect(throws: UsageError("'c' is one argument too many")) {
      try ArgumentParser(page).parse(["a", "b", "c"])
    }
    #expect(throws: Never.self) { try ArgumentParser(page).parse(["a"]) }
  }

  @Test("Options that exclude each other are named")
  func exclusion() throws {
    let parsed = try parse("t", "--quiet", "--count", "1")
    #expect(throws: UsageError("--count and --quiet exclude each other; give one of them")) {
      try parsed.allowOne(of: "count", "header", "quiet")
    }
    #expect(throws: Never.self) { try parsed.allowOne(of: "header", "quiet") }
  }

  @Test("The head of a command line ends at its first operand")
  func head() throws {
    let program = CommandPage("prog", summary: "", options: [CommandOption("server", value: "A", help: "")])
    let (parsed, rest) = try ArgumentParser(program).parseHead(["--server", "x", "pub", "--key", "k"])
    #expect(parsed.text("server") == "x")
    #expect(rest == ["pub", "--key", "k"])
  }
}
