import SluiceIO
import SluiceWire
import Testing

extension ShortStories {
  /// The scenario of all features with clients that state their topics' settings, in any order. Some topics stay connected, and some fail when they have lost
  /// their producers.
  @Suite struct StatementSeedTests {
    @Test(arguments: Seeds.chosen(for: .statements))
    func clientsGetTheTopicsThatTheyState(seed: UInt64) throws {
      let scenario = Scenario.stating(seed)
      let isKnown = Story.statements.failedWithoutChanges.contains(seed)
      let outcome = try Simulation(
        isKnown ? scenario : scenario.withChanges(), keepsLines: Seeds.single != nil
      ).run()
      if Seeds.single != nil { print(outcome.lines.joined(separator: "\n")) }
      #expect(
        outcome.failures.isEmpty,
        """
        Seed \(seed) fails:
        \(outcome.failures.prefix(5).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "StatementSeedTests"))
        """)
    }
  }
}

extension Scenario {
  /// The scenario of that seed, with stated topics.
  static func stating(_ seed: UInt64) -> Scenario {
    var scenario = random(seed)
    var random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 7)
    for index in scenario.topics.indices {
      var settings = scenario.topics[index].settings ?? TopicSettings()
      if random.oneIn(2) { settings.replayRecords = UInt64(random.next(in: 0...20)) }
      if random.oneIn(2) {
        settings.flow = [.free, .lossless, .fastest][random.next(in: 0...2)]
        settings.bufferRecords = UInt64(random.next(in: 0...20))
        settings.withoutSubscribers = TopicSettings.WhenAlone.allCases[random.next(in: 0...2)]
      }
      switch random.next(below: 4) {
      case 0: settings.connect = .auto(UInt32(random.next(in: 1...2)))
      case 1...2: settings.connect = .autoStay(UInt32(random.next(in: 1...2)))
      default: break
      }
      if random.oneIn(2) { settings.whenProducerLost = .fail(after: UInt32(random.next(in: 100...1_500))) }
      scenario.topics[index].settings = random.oneIn(3) ? settings : nil
      if !random.oneIn(4) { scenario.topics[index].stated = settings }
    }
    return scenario
  }
}
