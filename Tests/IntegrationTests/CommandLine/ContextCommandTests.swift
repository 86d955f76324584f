import Foundation
import Synchronization
import TestSupport
import Testing

/// `sluice context`, with real processes.
@Suite(.onItsOwnThread) struct ContextCommandTests {
  private let directory: TemporaryDirectory
  private var file: String { directory.file("config/sluice/contexts.json") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// Runs without SLUICE_SERVER.
  private func run(
    _ arguments: String..., code: Int32 = 0, environment: [String: String] = [:],
    at location: SourceLocation = #_sourceLocation
  ) throws -> (output: String, errors: String) {
    let process = try ChildProcess(
      BuiltProduct.path("sluice"), arguments,
      environment: [
        "XDG_CONFIG_HOME": directory.file("config"), "SLUICE_SERVER": "", "SLUICE_KEEPALIVE": "15m",
      ]
      .merging(environment) { $1 })
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return (process.standardOutput.text, process.standardError.text)
  }

  @Test func theOneInUseFindsTheBroker() throws {
    let (first, second) = (try BrokerProcess(), try BrokerProcess())
    try first.run("pub", "one", "--quiet", "x")
    try second.run("pub", "two", "--quiet", "x")
    #expect(try run("context", "list").output == "")
    _ = try run("context", "add", "a", "--server", first.address)
    _ = try run("context", "add", "b", "--server", second.address)
    #expect(try run("topic", "list", "--names").output == "one\n")
    #expect(try run("--context", "b", "topic", "list", "--names").output == "two\n")
    #expect(try run("topic", "list", "--names", environment: ["SLUICE_CONTEXT": "b"]).output == "two\n")
    #expect(try run("topic", "list", "--names", "-s", second.address).output == "two\n")
    #expect(
      try run("topic", "list", "--names", environment: ["SLUICE_SERVER": second.address]).output == "two\n")
    _ = try run("context", "use", "b")
    #expect(try run("topic", "list", "--names").output == "two\n")
    #expect(try run("context", "list").output.contains("*  b"))
    #expect(try run("context", "show", "--json").output.contains("\"context\":\"b\",\"current\":true"))
    _ = try run("context", "remove", "b")
    #expect(try !run("context", "list").output.contains("*"))
    #expect(try run("--context", "c", "ping", code: 2).errors.contains("there is no context c"))
    #expect(try run("--context", "a", "--server", "h", "ping", code: 2).errors.contains("exclude each other"))
    _ = try run("context", "add", "a", "--server", "h", code: 1)
    _ = try run("context", "add", "a", "--server", "h", "--replace")
    _ = try run("context", "add", "../x", "--server", "h", code: 2)
    _ = try run("context", "add", "x", code: 2)
  }

  @Test func severalServersAreTriedInTurn() throws {
    let (first, second) = (try BrokerProcess(), try BrokerProcess())
    try first.run("pub", "one", "--quiet", "x")
    try second.run("pub", "two", "--quiet", "x")
    // No broker listens at this address.
    let gone = "\(Loopback.freshHost()):7420"
    _ = try run("context", "add", "a", "--server", "\(gone),\(first.address),\(second.address)")
    _ = try run("context", "add", "b", "--server", gone, "--server", second.address)
    #expect(try run("context", "show").output.contains("\(gone),\(first.address),\(second.address)"))
    #expect(try run("topic", "list", "--names").output == "one\n")
    #expect(try run("--context", "b", "topic", "list", "--names").output == "two\n")
    first.process.signal(SIGTERM)
    _ = try first.process.waitForExit()
    #expect(try run("topic", "list", "--names").output == "two\n")
  }

  @Test func changesAtTheSameTimeAreAllKept() throws {
    let names = (0..<20).map { "c\($0)" }
    let environment = ["XDG_CONFIG_HOME": directory.file("config"), "SLUICE_SERVER": ""]
    let processes = try names.map { name in
      try ChildProcess(
        BuiltProduct.path("sluice"), ["context", "add", name, "--server", "h"], environment: environment)
    }
    for process in processes { #expect(try process.waitForExit() == .code(0), "\(process.messages)") }
    let list = try run("context", "list", "--json").output
    for name in names { #expect(list.contains("\"context\":\"\(name)\""), "\(name)") }
    // Exactly one of them was the first.
    #expect(list.split(separator: "\n").count { $0.contains("\"current\":true") } == 1)
  }

  @Test func aLinkIsFollowed() throws {
    _ = try run("context", "add", "a", "--server", "h")
    let real = directory.file("dotfiles.json")
    try FileManager.default.moveItem(atPath: file, toPath: real)
    try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: real)
    _ = try run("context", "add", "b", "--server", "h")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file) == real)
    #expect(try String(contentsOfFile: real, encoding: .utf8).contains("\"b\""))
    let mode = try FileManager.default.attributesOfItem(atPath: real)[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test func secretsAreForTheUserAlone() throws {
    try "hunter2\n".write(toFile: directory.file("secret"), atomically: true, encoding: .utf8)
    _ = try run(
      "context", "add", "p", "--server", "127.0.0.1:1", "--user", "alice", "--password-file",
      directory.file("secret"), "--store-secret")
    var status = stat()
    #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(try String(contentsOfFile: file, encoding: .utf8).contains("hunter2"))
    #expect(try !run("context", "show").output.contains("hunter2"))
    #expect(try !run("context", "list", "--json").output.contains("hunter2"))
    chmod(file, 0o640)
    for arguments in [["ping"], ["context", "list"], ["context", "show"]] {
      let process = try ChildProcess(
        BuiltProduct.path("sluice"), arguments,
        environment: ["XDG_CONFIG_HOME": directory.file("config"), "SLUICE_SERVER": ""])
      #expect(try process.waitForExit() != .code(0))
      #expect(
        process.standardError.text.contains("other users can read it (mode 640)"), "\(process.messages)")
    }
    // Permissions don't matter for a file without a secret.
    chmod(file, 0o600)
    _ = try run("context", "add", "p", "--server", "127.0.0.1:1", "--replace")
    chmod(file, 0o644)
    _ = try run("context", "list")
    try "nonsense".write(toFile: file, atomically: true, encoding: .utf8)
    #expect(try run("context", "list", code: 1).errors.contains("isn't JSON"))
  }

  @Test func credentialsGoToNoOtherServer() throws {
    let received = Mutex<[UInt8]>([])
    let server = try FakeServer { bytes in
      received.withLock { $0 += bytes }
      return .finish([])
    }
    try "t0ken\n".write(toFile: directory.file("secret"), atomically: true, encoding: .utf8)
    _ = try run(
      "context", "add", "p", "--server", server.address, "--token-file", directory.file("secret"),
      "--store-secret")
    // Credentials are sent to loopback addresses without TLS.
    _ = try run("topic", "list", code: 1)
    #expect(String(decoding: received.withLock { $0 }, as: UTF8.self).contains("t0ken"))
    received.withLock { $0 = [] }
    _ = try run("topic", "list", code: 1, environment: ["SLUICE_SERVER": server.address])
    _ = try run("topic", "list", "--server", server.address, code: 1)
    let text = String(decoding: received.withLock { $0 }, as: UTF8.self)
    #expect(text.contains("SLCE") && !text.contains("t0ken"))
  }
}
