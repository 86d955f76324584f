import SluiceClient
import SluiceWire
import Testing

@testable import SluiceTool

@Suite("The settings of a topic that is restored")
struct RestoredSettingsTests {
  @Test("everything can be published, and the topic has its own settings in the end")
  func settings() {
    var settings = TopicSettings.shared(replay: 2)
    settings.flow = .lossless
    settings.connect = .auto(2)
    settings.autoDelete = true
    settings.whenProducerLost = .fail(after: 30_000)
    settings.storage = .durable
    let passing = RestoredSettings.passing(settings)
    #expect(passing.flow == .free && passing.connect == .immediate)
    #expect(passing.autoDelete == false && passing.whenProducerLost == .wait)
    #expect(passing.storage == .durable && passing.replayRecords == settings.replayRecords)
    let changes = RestoredSettings.changes(from: passing, to: settings)
    #expect(changes.flow == .lossless && changes.connect == .auto(2))
    #expect(changes.autoDelete == true && changes.whenProducerLost == .fail(after: 30_000))
    // Restoring sets only the settings that it changes.
    #expect(changes.storage == nil && changes.replayRecords == nil && changes.scope == nil)
    #expect(RestoredSettings.changes(from: settings, to: settings) == TopicSettings())
  }
}

@Suite("What sluice sub says of its topics")
struct SubscriptionNoteTests {
  @Test("missed records are counted, with the topic where there are several")
  func lag() {
    #expect(
      SubscriptionNote.lag(1, 8) == "1 record was dropped before it was requested; continuing at offset 8")
    #expect(
      SubscriptionNote.change(.lagged(missed: 3, nextOffset: 8), of: "a.b")
        == "3 records of a.b were dropped before they were requested; continuing at offset 8")
  }

  @Test("changes that concern no reader aren't told")
  func changes() {
    #expect(SubscriptionNote.change(.live(nextOffset: 3), of: "t") == nil)
    #expect(SubscriptionNote.change(.finished, of: "t") == "topic t has completed")
    #expect(SubscriptionNote.change(.deleted, of: "t")?.hasPrefix("topic t was deleted") == true)
    #expect(
      SubscriptionNote.change(.restarted(nextOffset: 0), of: "t")?.hasPrefix("t was recreated") == true)
    #expect(
      SubscriptionNote.change(.rewound(nextOffset: 5), of: "t")?.contains("continuing at offset 5") == true)
  }
}
