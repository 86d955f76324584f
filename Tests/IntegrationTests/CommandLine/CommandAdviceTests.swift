import Foundation
import TestSupport
import Testing

/// The tool's advice about requests that can't be meant as written, and its exit code.
@Suite(.onItsOwnThread) struct CommandAdviceTests {
  @Test func aTopicWithOtherSettingsIsChangedAndNotDeleted() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "prices", "--keep", "48h")
    let refused = try broker.run("topic", "create", "prices", "--keep", "90m", code: 1).standardError.text
    #expect(
      refused
        == "sluice: topic prices exists with replay-age 2d, not 90m. To change it: sluice topic set prices --replay-age 90m\n"
    )
    try broker.run("topic", "set", "prices", "--replay-age", "90m")
    try broker.run("topic", "create", "prices", "--keep", "90m")
  }

  @Test func anAnswerOnStandardInputIsRead() throws {
    let broker = try BrokerProcess()
    for topic in ["t", "u"] { try broker.run("pub", topic, "-q", "x") }
    func ask(_ command: String, _ topic: String, _ answer: String, code: Int32) throws {
      try broker.run(["topic", command, topic], input: .bytes(Array(answer.utf8)), code: code)
    }
    for command in ["delete", "purge"] {
      try ask(command, "t", "n\n", code: 1)
      try ask(command, "t", "\n", code: 1)
      try ask(command, "t", "", code: 2)
    }
    try ask("delete", "*", "no\n", code: 1)
    #expect(try broker.run("topic", "list", "--names").standardOutput.text == "t\nu\n")
    #expect(try broker.run("sub", "t", "--until-live").standardOutput.text == "x\n")
    try ask("purge", "t", "y\n", code: 0)
    try ask("delete", "t", "yes\n", code: 0)
    #expect(try broker.run("topic", "list", "--names").standardOutput.text == "u\n")
  }

  @Test func aStartBeyondTheEndIsSaid() throws {
    let broker = try BrokerProcess()
    try broker.run("pub", "t", "-q", "x")
    let process = try broker.sluice("sub", "t", "--from", "offset:99")
    let note = try process.standardError.line(startingWith: "sluice: offset 99")
    #expect(
      note == "sluice: offset 99 is beyond the end of topic t, whose next record gets 1; waiting for it")
    process.stop()
  }

  @Test func theManualMakesItsDirectory() throws {
    let (broker, directory) = (try BrokerProcess(), try TemporaryDirectory())
    try broker.run("manual", "--directory", directory.file("share/man/man1"))
    #expect(FileManager.default.fileExists(atPath: directory.file("share/man/man1/sluice-pub.1")))
    try writeFile(directory.file("file"), [])
    let refused = try broker.run("manual", "--directory", directory.file("file/man1"), code: 1)
    #expect(refused.standardError.text.contains("--directory: cannot create"))
  }

  @Test func aFileThatCannotBeUsedIsBlamedOnItsOption() throws {
    let broker = try BrokerProcess()
    for (option, more) in [
      ("--tls-ca", []), ("--tls-cert", ["--tls-key", "/none2"]), ("--password-file", ["--user", "u"]),
      ("--token-file", []),
    ] as [(String, [String])] {
      let refused = try broker.run(["ping", "-s", "tls://127.0.0.1:1", option, "/none"] + more, code: 2)
      #expect(refused.standardError.text.hasPrefix("sluice: \(option): "), "\(refused.messages)")
    }
  }

  @Test func aNativeClientAtAnHTTPPortIsToldAtOnce() throws {
    let broker = try BrokerProcess("--listen", "http://127.0.0.1:0", "--admin", "127.0.0.1:0")
    let gateway = try #require(broker.addresses.last).replacing("http://", with: "")
    let admin = try #require(broker.adminAddress)
    // Far below the ten seconds after which the tool gives up on a silent server.
    for (words, address) in [
      (["topic", "list"], gateway), (["ping", "--alive"], gateway), (["topic", "list"], admin),
    ] {
      let begin = Date()
      let process = try ChildProcess.sluice(words, server: address)
      #expect(try process.waitForExit() == .code(1))
      #expect(process.standardError.text.contains("answers with HTTP"), "\(process.messages)")
      #expect(Date().timeIntervalSince(begin) < 5)
    }
  }

  @Test func clientsHaveTheNameThatIsGiven() throws {
    let broker = try BrokerProcess()
    let process = try broker.start(["sub", "t", "--from", "new"], environment: ["SLUICE_NAME": "billing"])
    _ = try broker.sluice("pub", "t", "-q", "x").waitForExit()
    try broker.waitForSubscriptions(1, on: "t")
    let own = try broker.run("connection", "list", "--name", "me").standardOutput.text
    #expect(own.contains("billing ") && own.contains("me "))
    process.stop()
  }

  @Test func topicsOfGatewaysAndRequestsAreHidden() throws {
    let broker = try BrokerProcess()
    for topic in ["a", "mqtt.x", "z"] { try broker.run("pub", topic, "-q", "x") }
    try broker.run("sub", "mqtt.x", "--cursor", "c", "--until-live")
    #expect(try broker.run("topic", "list", "--names").standardOutput.text == "a\nz\n")
    #expect(try broker.run("topic", "list", "--names", "--limit", "2").standardOutput.text == "a\nz\n")
    #expect(try broker.run("topic", "list", "--names", "--all").standardOutput.text == "a\nmqtt.x\nz\n")
    #expect(try broker.run("topic", "list", "--names", "--prefix", "mqtt.").standardOutput.text == "mqtt.x\n")
    #expect(try broker.run("cursor", "list").standardOutput.text == "")
    #expect(try broker.run("cursor", "list", "--all").standardOutput.text.contains("mqtt.x"))
    #expect(try !broker.run("top", "--once").standardOutput.text.contains("mqtt.x"))
    #expect(try broker.run("top", "--once", "--all").standardOutput.text.contains("mqtt.x"))
  }
}
