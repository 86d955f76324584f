import TestSupport
import Testing

/// Arguments are bytes: those that aren't UTF-8 are passed on unchanged, or rejected.
@Suite(.onItsOwnThread) struct ByteArgumentTests {
  private let broker: BrokerProcess
  private let directory: TemporaryDirectory

  init() throws {
    broker = try BrokerProcess()
    directory = try TemporaryDirectory()
  }

  /// Runs the tool with each argument expanded by `printf`, in which `\\377` is the byte FF.
  private func run(
    _ arguments: String..., program: String = "sluice", code: Int32 = 0,
    at location: SourceLocation = #_sourceLocation
  ) throws -> ChildProcess {
    try run(arguments, program: program, code: code, at: location)
  }

  private func run(
    _ arguments: [String], program: String = "sluice", code: Int32 = 0,
    at location: SourceLocation = #_sourceLocation
  ) throws -> ChildProcess {
    let words = arguments.map { "\"$(printf -- '\($0)')\"" }.joined(separator: " ")
    let process = try ChildProcess(
      "/bin/sh", ["-c", "exec '\(BuiltProduct.path(program))' \(words)"],
      environment: ChildProcess.environment(server: broker.address))
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return process
  }

  @Test func aRecordHasTheBytesThatWereGiven() throws {
    _ = try run("pub", "t", "a\\377b", "-q", "--key", "k\\376", "--header", "h=v\\375")
    let record = try broker.run("sub", "t", "--until-live", "--json").standardOutput.text
    #expect(record.contains(#""payload_base64":"Yf9i""#) && record.contains(#""key_base64":"a/4=""#))
    #expect(record.contains(#""name":"h","value_base64":"dv0=""#))
    for filter in [
      ["--key", "k\\376"], ["--key-prefix", "k\\376"], ["--header", "h=v\\375"],
      ["--header-prefix", "h=v\\375"],
    ] {
      #expect(
        try run("sub", "t", "--until-live", "--raw", filter[0], filter[1]).standardOutput.bytes == [
          0x61, 0xFF, 0x62,
        ])
      #expect(try run("sub", "t", "--until-live", "--raw", filter[0], "h=\\374").standardOutput.bytes == [])
    }
    _ = try run("pub", "u", "--key-separator", "\\377", "--file", "/dev/null")
  }

  @Test func aRequestAndItsKey() throws {
    try broker.run("topic", "create", "r")
    let service = try broker.sluice("reply", "r", "--exec", "cat; printf '%s' \"$SLUICE_KEY\"")
    try broker.waitForSubscriptions(1, on: "r")
    let process = try run("request", "r", "a\\377", "--key", "k\\376")
    #expect(process.standardOutput.bytes == [0x61, 0xFF, 0x6B, 0xFE])
    service.stop()
  }

  @Test func filesWhoseNamesAreBytes() throws {
    let (source, copy) = ("\(directory.path)/i\\377", "\(directory.path)/o\\377")
    let shell = try ChildProcess("/bin/sh", ["-c", "echo hello > \"$(printf '\(source)')\""])
    #expect(try shell.waitForExit() == .code(0))
    _ = try run("pub", "t", "--file", source, "-q")
    _ = try run("sub", "t", "--until-live", "-o", copy)
    let reader = try ChildProcess("/bin/sh", ["-c", "cat \"$(printf '\(copy)')\""])
    #expect(try reader.waitForExit() == .code(0) && reader.standardOutput.text == "hello\n")
    let missing = try run("pub", "t", "--file", "/none\\377", code: 1)
    #expect(missing.standardError.text == "sluice: cannot open /none\\xff: No such file or directory\n")
  }

  @Test func whatHasToBeTextIsRefused() throws {
    for words in [
      ["pub", "t\\377", "x"], ["topic", "show", "t\\377"], ["sub", "t", "--group", "\\377"],
      ["topic", "fail", "t", "m\\377"], ["pub", "t", "x", "--fail", "\\377"], ["ping", "--server", "h\\377"],
      ["\\377"],
    ] {
      let complaint = try run(words, code: 2).standardError
      #expect(complaint.lines.count == 1 && complaint.text.contains("\\xff"), "\(words): \(complaint.text)")
    }
    let data = try run("--data", "/tmp/d\\377", program: "sluiced", code: 2)
    #expect(data.standardError.text.contains("--data: '/tmp/d\\xff' isn't UTF-8"))
  }

  @Test func theKeyInTheEnvironmentOfACommand() throws {
    let lines = [
      #"{"payload":"1","key_base64":"a/8="}"#, #"{"payload":"2","key_base64":"a2EAYg=="}"#,
      #"{"payload":"3"}"#,
    ]
    try broker.run(["pub", "t", "--json", "-q"], input: .bytes(Array(lines.joined(separator: "\n").utf8)))
    let process = try ChildProcess(
      BuiltProduct.path("sluice"),
      [
        "sub", "t", "--until-live", "--exec",
        "printf '%s|%s\\n' \"${SLUICE_KEY-none}\" \"${SLUICE_KEY_BASE64-none}\"",
      ],
      environment: ChildProcess.environment(server: broker.address).merging([
        "SLUICE_KEY": "inherited", "SLUICE_KEY_BASE64": "inherited",
      ]) { $1 })
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    let expected = [0x6B, 0xFF] + Array("|a/8=\nnone|a2EAYg==\nnone|none\n".utf8)
    #expect(process.standardOutput.bytes == expected)
  }
}
