import Testing

extension ShortStories {
  /// Dropped records never come back: compares random histories of a topic, made from a seed, with a model of its floor. `Seeds` says how to choose
  /// seeds.
  @Suite struct FloorOracleTests {
    @Test(arguments: Seeds.chosen(for: .floor))
    func whatIsGoneIsGoneForEveryReaderAndFigure(seed: UInt64) throws {
      let story = try FloorStory(seed: seed)
      try story.run()
      if Seeds.single != nil { print(story.lines.joined(separator: "\n")) }
      guard !story.failures.isEmpty else { return }
      Issue.record(
        """
        Seed \(seed) fails:
        \(story.failures.joined(separator: "\n"))
        Before it:
        \(story.lines.suffix(40).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "FloorOracleTests"))
        """)
    }

    @Test(arguments: FloorFlaw.allCases)
    func aFlawedFloorIsNoticed(_ flaw: FloorFlaw) throws {
      let isNoticed = try (1...60 as ClosedRange<UInt64>).contains { seed in
        let story = try FloorStory(seed: seed, flaw: flaw)
        try story.run()
        return !story.failures.isEmpty
      }
      #expect(isNoticed)
    }

    @Test(arguments: [3, 8, 21, 34] as [UInt64])
    func aSeedPlaysTheSameStoryEachTime(seed: UInt64) throws {
      let (first, second) = (try FloorStory(seed: seed), try FloorStory(seed: seed))
      try first.run()
      try second.run()
      #expect(first.lines == second.lines && !first.lines.isEmpty)
    }
  }
}
