import SluiceCommand
import TestSupport
import Testing

@testable import SluiceDaemon
@testable import SluiceTool

@Suite("Shell completions")
struct CompletionTests {
  private static func script(_ shell: CompletionScript.Shell, _ program: String) -> String {
    program == "sluice"
      ? CompletionsCommand.script(for: shell)
      : CompletionScript.render(DaemonPage.page(), for: shell)
  }

  /// The completions that bash offers after these words; the last word is incomplete.
  private func offers(_ words: String...) throws -> [String] {
    let directory = try TemporaryDirectory()
    let script = directory.file("script")
    try write(Self.script(.bash, words[0]), to: script)
    for name in ["data.toml", "data.txt"] { try write("", to: directory.file(name)) }
    let program = """
      source "$1"; cd "$2"; shift 2
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      "_$1"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let process = try ChildProcess(
      "/bin/bash", ["--norc", "-u", "-c", program, "test", script, directory.path] + words)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardError.text == "", "\(words)")
    return process.standardOutput.lines.filter { !$0.isEmpty }
  }

  @Test("bash completes commands, and those below them")
  func commands() throws {
    #expect(try offers("sluice", "") == Commands.all.map { $0.page.word })
    #expect(try offers("sluice", "to") == ["topic", "top", "token"])
    #expect(try offers("sluice", "topic", "c") == ["create", "complete", "connect"])
    #expect(try offers("sluice", "--server", "127.0.0.1", ":", "7420", "topic", "sh") == ["show"])
    #expect(try offers("sluice", "--server", "=", "127.0.0.1", ":", "7420", "topic", "sh") == ["show"])
    #expect(try offers("sluice", "nonsense", "").isEmpty == false)
  }

  @Test("bash completes options of the command, and of every command")
  func options() throws {
    #expect(try offers("sluice", "topic", "create", "x", "--sto") == ["--storage"])
    #expect(try offers("sluice", "topic", "create", "x", "--serv") == ["--server"])
    #expect(try offers("sluice", "store", "stat", "x", "--serv") == [])
    #expect(try offers("sluice", "topic", "list", "--sto") == [])
    #expect(try offers("sluice", "pub", "--key", "--sto", "x", "--fra") == ["--frames"])
    #expect(try offers("sluice", "pub", "--", "--fra") == [])
    #expect(try offers("sluiced", "--check-c") == ["--check-config"])
    #expect(try Set(offers("sluiced", "--")) == Set(DaemonPage.page().options.map { "--\($0.name)" }))
  }

  @Test("bash completes values that are words")
  func values() throws {
    #expect(try offers("sluice", "topic", "create", "x", "--storage", "") == ["memory", "durable"])
    #expect(try offers("sluice", "topic", "create", "x", "--storage", "=") == ["memory", "durable"])
    #expect(try offers("sluice", "topic", "create", "x", "--storage", "=", "d") == ["durable"])
    #expect(try offers("sluice", "pub", "x", "--ack", "r") == ["received"])
    #expect(try offers("sluice", "completions", "") == ["bash", "zsh", "fish"])
    #expect(try offers("sluice", "completions", "bash", "") == [])
    #expect(try offers("sluice", "manual", "man") == ["manual"])
    #expect(try offers("sluice", "manual", "") == Commands.all.map { $0.page.word })
    // Its value can only follow an equals sign.
    #expect(try offers("sluice", "topic", "create", "--compact", "") == [])
    #expect(try offers("sluiced", "--log-level", "w") == ["warning"])
    #expect(try offers("sluiced", "--auth", "") == ["on", "off"])
  }

  @Test("bash completes names of files where files are meant, and of directories")
  func files() throws {
    #expect(try offers("sluice", "pub", "x", "--file", "data.").sorted() == ["data.toml", "data.txt"])
    #expect(try offers("sluiced", "--config", "data.to") == ["data.toml"])
    #expect(try offers("sluiced", "--data", "data") == [])
    #expect(try offers("sluice", "store", "stat", "data") == [])
    #expect(try offers("sluice", "pub", "data") == [])
  }

  @Test(
    "every command and option is in every script, and no option has a value in one command and none in another"
  )
  func completeness() throws {
    var options: [String: Bool] = [:]
    for shell in CompletionScript.Shell.allCases {
      let script = Self.script(shell, "sluice")
      for page in Commands.all.flatMap({ [$0.page] + $0.page.commands }) {
        #expect(script.contains(page.word), "\(shell): \(page.name)")
        for option in page.options {
          #expect(script.contains(option.name), "\(shell): \(option.name)")
          let takesNext = option.value != nil && option.bare == nil
          // Fish compares only names.
          #expect(options[option.name, default: takesNext] == takesNext, "\(option.name)")
          options[option.name] = takesNext
        }
      }
      let daemon = Self.script(shell, "sluiced")
      for option in DaemonPage.page().options {
        #expect(daemon.contains(option.name), "\(shell): \(option.name)")
      }
    }
  }

  @Test("the shells can read them", arguments: CompletionScript.Shell.allCases)
  func syntax(of shell: CompletionScript.Shell) throws {
    let found = ["/bin", "/usr/bin", "/usr/local/bin"].map { "\($0)/\(shell.rawValue)" }.first(
      where: isExecutable)
    guard let path = found else { return print("there is no \(shell.rawValue) here: skipped") }
    let directory = try TemporaryDirectory()
    for program in ["sluice", "sluiced"] {
      try write(Self.script(shell, program), to: directory.file(program))
      let process = try ChildProcess(path, ["-n", directory.file(program)])
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
      #expect(process.standardError.text == "")
    }
  }
}
