import SluiceCommand
import SluiceWire
import Testing

@Suite("Topics with their settings as lines of text")
struct TopicDefinitionTests {
  private func read(_ text: String) throws -> [TopicDefinition] {
    try TopicDefinition.read(Array(text.utf8))
  }

  @Test("a line is read as it was written")
  func roundTrip() throws {
    var settings = TopicSettings.shared(replay: 2)
    settings.replayBytes = TopicSettings.unlimited
    settings.replayAge = 90_061_007
    settings.bufferBytes = 3 << 20
    settings.connect = .autoStay(3)
    settings.whenProducerLost = .fail(after: 30_000)
    settings.storage = .durable
    settings.sync = .interval(50)
    settings.compact = true
    settings.autoDelete = false
    let definitions = [
      TopicDefinition(topic: "quote\"back\\slash-ünïcode", settings: settings),
      TopicDefinition(topic: "plain", settings: TopicSettings()),
    ]
    let text = definitions.map(\.line).joined()
    #expect(text.split(separator: "\n").count == 2)
    #expect(try read(text) == definitions)
    // Empty lines, and line breaks of another system, don't matter.
    #expect(try read("\n" + text.split(separator: "\n").joined(separator: "\r\n \n")) == definitions)
    #expect(try read("").isEmpty)
  }

  @Test("a topic may stand there twice, with the same settings")
  func twice() throws {
    let lines = #"{"topic":"t","settings":{"flow":"free"}}"# + "\n"
    #expect(try read(lines + lines).count == 1)
    let other = #"{"topic":"t","settings":{"flow":"lossless"}}"#
    #expect(throws: ValueError("line 3: topic t has other settings on line 1")) {
      try read(lines + lines + other)
    }
  }

  @Test("values are written as options are, presets included")
  func values() throws {
    let line =
      #"{"settings":{"replay-records":5,"preset":"shared:2","flow":"free","compact":true},"topic":"t","more":[1]}"#
    let found = try #require(try read(line).first)
    #expect(found.topic == "t" && found.settings.replayRecords == 5 && found.settings.flow == .free)
    #expect(found.settings.compact == true)
    #expect(found.settings.scope == TopicSettings.shared(replay: 2).scope)
  }

  @Test(
    "what isn't a topic with its settings is refused, with its line",
    arguments: [
      ("[]", "it isn't an object"), ("{", "it isn't JSON"), ("{}", "it has no topic"),
      (#"{"topic":1,"settings":{}}"#, "it has no topic"), (#"{"topic":"","settings":{}}"#, "name"),
      (#"{"topic":"a..b","settings":{}}"#, "a..b"), (#"{"topic":"t"}"#, "topic list --settings"),
      (#"{"topic":"t","records":3,"storage":"memory"}"#, "has no settings"),
      (#"{"topic":"t","settings":{"flow":"fre"}}"#, "did you mean 'free'"),
      (#"{"topic":"t","settings":{"flwo":"free"}}"#, "did you mean 'flow'"),
      (#"{"topic":"t","settings":{"compact":[]}}"#, "compact: a text or a number is expected"),
    ])
  func mistakes(line: String, part: String) {
    let error = #expect(throws: ValueError.self) {
      try read(#"{"topic":"good","settings":{}}"# + "\n\n" + line)
    }
    #expect(
      error?.description.hasPrefix("line 3: ") == true && error?.description.contains(part) == true,
      "\(error?.description ?? "")")
  }
}
