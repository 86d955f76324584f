import SluiceClient
import SluiceCommand
import TestSupport
import Testing

@testable import SluiceTool

@Suite("Words and values that are meant otherwise")
struct AdviceTests {
  @Test(
    "Words of other systems find the command",
    arguments: [
      (["publish"], "sluice pub"), (["consume"], "sluice sub"), (["subscribe"], "sluice sub"),
      (["topics", "ls"], "sluice topic list"), (["topic", "rm"], "sluice topic delete"),
      (["topic", "info"], "sluice topic show"), (["cursor", "reset"], "sluice cursor move"),
      (["context", "rm"], "sluice context remove"), (["user", "ls"], "sluice user list"),
      (["info"], "sluice status"),
    ])
  func synonyms(words: [String], command: String) throws {
    var name = ""
    guard case .print(let text) = try CommandLineChoice.read(words + ["--help"], naming: &name) else {
      Issue.record("no help")
      return
    }
    #expect(text.hasPrefix("\(command): "))
  }

  @Test(
    "What another command does is named",
    arguments: [
      (["ls"], "sluice topic list"), (["rm", "t"], "sluice topic delete TOPIC"),
      (["group", "delete", "t", "g"], "sluice cursor delete TOPIC GROUP"),
      (["group", "reset", "t", "g"], "sluice cursor move TOPIC GROUP --to START"),
    ])
  func elsewhere(words: [String], command: String) {
    var name = ""
    let error = #expect(throws: UsageError.self) { try CommandLineChoice.read(words, naming: &name) }
    #expect(error?.description.hasSuffix("; use \(command)") == true, "\(error?.description ?? "")")
  }

  @Test("A message that may be meant as a file is noted")
  func hints() throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("f"), [])
    #expect(PubCommand.hint([Array("-".utf8)])?.contains("standard input") == true)
    #expect(
      PubCommand.hint([Array("@\(directory.file("f"))".utf8)])?.contains("--file \(directory.file("f"))")
        == true)
    for plain in [[], ["@"], ["@\(directory.file("none"))"], ["-", "-"], ["x"]] {
      #expect(PubCommand.hint(plain.map { Array($0.utf8) }) == nil, "\(plain)")
    }
  }

  @Test("Headers of a record are a list, or an object")
  func headers() throws {
    func headers(_ text: String) throws -> [Message.Header] {
      try Array("{\"payload\":\"\",\"headers\":\(text)}".utf8).withUnsafeBytes {
        try RecordNotation.json.message(in: $0, number: 1)
      }?.headers ?? []
    }
    #expect(try headers("{}") == [] && headers("[]") == [])
    #expect(try headers(#"{"b":"1","a":"2"}"#) == [.init("a", "2"), .init("b", "1")])
    #expect(throws: InputError.self) { try headers(#"{"a":1}"#) }
    #expect(throws: InputError.self) { try headers("7") }
  }

  @Test("Topics of requests and of the MQTT gateway are hidden, unless a prefix names them")
  func hidden() {
    #expect(HiddenTopics.contains("_inbox.a") && HiddenTopics.contains("mqtt.sessions"))
    #expect(!HiddenTopics.contains("mqtt") && !HiddenTopics.contains("orders.mqtt."))
    #expect(
      HiddenTopics.isNamed(by: "_in") && HiddenTopics.isNamed(by: "mqtt.s") && !HiddenTopics.isNamed(by: ""))
  }

  @Test("The difference of a topic's settings has the words and units that were typed")
  func disagreement() throws {
    var name = ""
    let words = ["topic", "create", "t", "--keep", "90m", "--replay-records", "5", "--storage", "durable"]
    guard case .run(let command, _) = try CommandLineChoice.read(words, naming: &name),
      case .topic(let asked, let disagreement)? = (command as? TopicCreateCommand)?.target
    else {
      Issue.record("no topic")
      return
    }
    var existing = asked
    #expect(disagreement.message(existing, asked: asked) == nil)
    existing.replayAge = 7_200_000
    existing.replayRecords = 5
    #expect(
      disagreement.message(existing, asked: asked)
        == "topic t exists with replay-age 2h, not 90m. To change it: sluice topic set t --replay-age 90m"
    )
    existing.storage = .memory
    #expect(
      disagreement.message(existing, asked: asked)
        == "topic t exists with replay-age 2h, not 90m; storage memory, not durable. --storage can't be changed while the topic exists. To change the rest: sluice topic set t --replay-age 90m"
    )
  }
}
