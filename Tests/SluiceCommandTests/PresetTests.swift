import SluiceCommand
import SluiceWire
import Testing

@Suite struct PresetTests {
  @Test func presetsAreNamesForSettings() throws {
    #expect(try TopicPreset.parse("shared") == .shared)
    #expect(try TopicPreset.parse("shared:2") == .shared(replay: 2))
    #expect(try TopicPreset.parse("shared-forever") == .shared(replay: 0, scope: .forever))
    #expect(try TopicPreset.parse("shared-forever:2") == .shared(replay: 2, scope: .forever))
    #expect(try TopicPreset.parse("replayed:7") == .replayed(7))
    #expect(try TopicPreset.parse("back-pressured") == .backPressured)
    #expect(try TopicPreset.parse("one-shot") == .oneShot)
    for text in [
      "", "replayed", "replayed:x", "sharde", "shared:", "shared-forever:", "one-shot:1", "back-pressured:2",
    ] {
      #expect(throws: ValueError.self) { try TopicPreset.parse(text) }
    }
  }

  /// Other settings override a preset, in any order.
  @Test(arguments: ["t.> preset=shared:2 flow=free", "t.> flow=free preset=shared:2"])
  func rulesTakeThem(_ rule: String) throws {
    var expected = TopicSettings.shared(replay: 2)
    expected.flow = .free
    #expect(try TopicRuleText.parse(rule).settings == expected)
  }

  @Test func connectionsThatStayAndLostProducersAreWrittenAsTheyAreRead() throws {
    for (rule, check) in [
      ("t connect=auto-stay:3 when-producer-lost=fail:30s", true), ("t connect=auto-stay", true),
      ("t when-producer-lost=wait", true), ("t when-producer-lost=fail", false),
      ("t when-producer-lost=fail:0s", false), ("t connect=auto-stay:0", false),
    ] {
      guard check else {
        #expect(throws: ValueError.self) { try TopicRuleText.parse(rule) }
        continue
      }
      let settings = try TopicRuleText.parse(rule).settings
      let words = TopicOption.all.compactMap { option in option.write(settings).map { "\(option.name)=\($0)" }
      }
      #expect(try TopicRuleText.parse("t " + words.joined(separator: " ")).settings == settings)
    }
  }
}
