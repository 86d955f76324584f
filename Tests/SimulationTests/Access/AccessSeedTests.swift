import Testing

extension ShortStories {
  /// Peers that try allowed and denied operations while their permissions change.
  @Suite struct AccessSeedTests {
    @Test(arguments: Seeds.chosen(for: .access))
    func nobodyLearnsOfWhatIsntTheirs(seed: UInt64) throws {
      let story = try AccessStory(seed: seed)
      try story.play()
      #expect(
        story.failures.isEmpty,
        """
        Seed \(seed) fails:
        \(story.failures.prefix(5).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "AccessSeedTests"))
        """)
    }

    @Test func storiesAreAboutSomething() throws {
      var told: [AccessStory.Event: Int] = [:]
      for seed in 1...20 as ClosedRange<UInt64> {
        let story = try AccessStory(seed: seed)
        try story.play()
        told.merge(story.told) { $0 + $1 }
      }
      for event in AccessStory.Event.allCases {
        #expect(told[event, default: 0] > 0, "\(event) never happens")
      }
    }
  }
}
