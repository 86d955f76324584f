import Glibc
import TestSupport
import Testing

/// Completions of topic names in shells.
@Suite(.onItsOwnThread) struct TopicCompletionTests {
  private let broker: BrokerProcess
  private let directory: TemporaryDirectory

  init() throws {
    broker = try BrokerProcess()
    directory = try TemporaryDirectory()
    let client = try broker.client()
    for topic in ["orders", "orders.eu", "orders.us", "ordert", "till:1", "x$(touch${IFS}pwned)", "été.un"] {
      try client.create(topic)
    }
  }

  /// Nil if it isn't installed.
  private func path(of shell: String) -> String? {
    ["/bin", "/usr/bin", "/usr/local/bin"].map { "\($0)/\(shell)" }.first { access($0, X_OK) == 0 }
  }

  /// Runs a program of the shell, in which `$1` is the completion script and `sluice` the built program.
  private func run(
    _ shell: String, _ options: [String], _ program: String, _ arguments: [String], server: String
  ) throws -> [String] {
    guard let path = path(of: shell) else { throw TestFailure("there is no \(shell)") }
    let tool = try BuiltProduct.path("sluice")
    let script = directory.file(shell)
    let made = try ChildProcess(tool, ["completions", shell], output: .file(script))
    #expect(try made.waitForExit() == .code(0))
    let folder = tool[..<tool.lastIndex(of: "/")!]
    let names = shell == "fish" ? [] : ["test"]
    let process = try ChildProcess(
      path, options + ["-c", "cd '\(directory.path)'\n\(program)"] + names + [script] + arguments,
      environment: [
        "SLUICE_SERVER": server, "PATH": "\(folder):/usr/bin:/bin", "HOME": directory.path,
        "LC_ALL": "C.UTF-8",
      ])
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardError.text == "", "\(arguments)")
    return process.standardOutput.lines.filter { !$0.isEmpty }
  }

  // MARK: bash

  /// The completions that bash offers after these words; the last word is incomplete.
  private func bash(_ words: String..., server: String? = nil) throws -> [String] {
    let program = """
      source "$1"; shift
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      _sluice
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    return try run(
      "bash", ["--norc", "-u"], program, ["sluice"] + words, server: server ?? broker.address)
  }

  @Test func bashOffersThoseOfTheBroker() throws {
    #expect(try bash("sub", "orders.") == ["orders.eu", "orders.us"])
    #expect(try bash("sub", "order") == ["orders", "orders.eu", "orders.us", "ordert"])
    #expect(try bash("sub", "--from", "new", "--dead-letters", "orders.e") == ["orders.eu"])
    #expect(try bash("sub", "--dead-letters=orders.e") == ["orders.eu"])
    #expect(try bash("sub", "none") == [])
    #expect(try bash("pub", "orders", "orders") == [])
    // The shell replaces the part after the colon.
    #expect(try bash("sub", "till", ":", "") == ["1"])
    #expect(try bash("sub", "till") == ["till:1"])
    #expect(try bash("sub", "ét") == ["été.un"])
  }

  @Test func bashAsksTheBrokerOfTheLine() throws {
    let parts = broker.address.split(separator: ":").map(String.init)
    let nobody = try FakeServer.nobody()
    #expect(try bash("sub", "orders.", server: nobody) == [])
    for line in [["--server"], ["--server", "="]] {
      let words = line + [parts[0], ":", parts[1], "sub", "orders.u"]
      #expect(
        try run(
          "bash", ["--norc", "-u"],
          "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _sluice; printf '%s\\n' \"${COMPREPLY[@]}\"",
          ["sluice"] + words, server: nobody) == ["orders.us"])
    }
  }

  @Test func aNameIsNoProgram() throws {
    #expect(try bash("sub", "x") == ["x\\$\\(touch\\$\\{IFS\\}pwned\\)"])
    #expect(access(directory.file("pwned"), F_OK) != 0)
  }

  // MARK: The others

  @Test func fishOffersThemToo() throws {
    guard path(of: "fish") != nil else { return print("there is no fish here: skipped") }
    func fish(_ line: String, server: String) throws -> [String] {
      try run("fish", ["--no-config"], "source $argv[1]; complete -C $argv[2]", [line], server: server)
        .map { String($0.prefix { $0 != "\t" }) }
    }
    #expect(try fish("sluice sub orders.", server: broker.address) == ["orders.eu", "orders.us"])
    let nobody = try FakeServer.nobody()
    for line in [
      "sluice --server \(broker.address) sub orders.", "sluice --server=\(broker.address) sub orders.",
    ] {
      #expect(try fish(line, server: nobody) == ["orders.eu", "orders.us"])
    }
    #expect(try fish("sluice sub orders.", server: nobody) == [])
  }

  @Test func zshOffersThemToo() throws {
    guard path(of: "zsh") != nil else { return print("there is no zsh here: skipped") }
    // Replaces the shell's own functions, which need a terminal.
    let program = """
      compdef() { }
      source "$1"; shift
      compadd() { print -rl -- "${(@P)@[-1]}" }
      PREFIX=$1; shift
      _sluice_line=("$@")
      _sluice_topics
      """
    func zsh(_ prefix: String, _ line: String..., server: String) throws -> [String] {
      try run("zsh", ["-f"], program, [prefix] + line, server: server)
    }
    #expect(try zsh("orders.", server: broker.address) == ["orders.eu", "orders.us"])
    #expect(try zsh("x", server: broker.address) == ["x$(touch${IFS}pwned)"])
    let nobody = try FakeServer.nobody()
    #expect(try zsh("orders.u", "--server", broker.address, "sub", server: nobody) == ["orders.us"])
    #expect(try zsh("orders.u", "--server=\(broker.address)", "sub", server: nobody) == ["orders.us"])
    #expect(try zsh("orders.u", "sub", server: nobody) == [])
    #expect(access(directory.file("pwned"), F_OK) != 0)
  }

  // MARK: The list that completions use

  @Test func aListMayBeAPartOfAll() throws {
    func list(_ options: String...) throws -> String {
      let process = try ChildProcess.sluice(["topic", "list"] + options, server: broker.address)
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
      return process.standardOutput.text
    }
    #expect(try list("--names", "--prefix", "orders") == "orders\norders.eu\norders.us\n")
    #expect(try list("--names", "--prefix", "orders", "--limit", "2") == "orders\norders.eu\n")
    #expect(try list("--names", "--limit", "1") == "orders\n")
    #expect(try list("--names", "--prefix", "ét") == "été.un\n")
    #expect(try list("--names").split(separator: "\n").count == 7)
    #expect(try list("--prefix", "orders.e").split(separator: "\n").count == 2)
    #expect(try list("--json", "--prefix", "orders.e").contains("\"topic\":\"orders.eu\""))
    let silent = try FakeServer { _ in .send([]) }
    let process = try ChildProcess.sluice(["topic", "list", "--timeout", "100ms"], server: silent.address)
    #expect(try process.waitForExit() == .code(1))
    #expect(process.standardError.text.contains("didn't answer within 100ms"), "\(process.messages)")
    let confused = try ChildProcess.sluice(["topic", "list", "--names", "--json"], server: silent.address)
    #expect(try confused.waitForExit() == .code(2))
  }
}
