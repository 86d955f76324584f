import Testing

@Suite struct SeedChoiceTests {
  @Test func aRunPlaysTheSeedsThatOnceFailedAndFreshOnes() {
    #expect(Seeds.mixed([7, 1_002], base: 1_000, count: 6) == [7, 1_002, 1_000, 1_001, 1_003, 1_004])
    #expect(Seeds.mixed([], base: 5, count: 2) == [5, 6])
  }

  @Test func seedsThatOnceFailedAreAllPlayedHoweverMany() {
    #expect(Seeds.mixed([1, 2, 3], base: 10, count: 2) == [1, 2, 3])
  }

  @Test func runsAMomentApartHaveSeedsFarApart() {
    let bases = (0..<20).map { Seeds.drawBase(clock: 1_800_000_000_000_000 + $0) }
    #expect(Set(bases.map { $0 / 1_000 }).count == 20)
    #expect(bases.allSatisfy { (100_000..<1_000_000_000).contains($0) })
    #expect(Seeds.drawBase(clock: 42) == Seeds.drawBase(clock: 42))
  }

  @Test func noSeedIsListedTwice() {
    for story in [Story.everything, .storms, .durable, .history, .groups, .access, .patterns] {
      #expect(Set(story.onceFailed).count == story.onceFailed.count)
      #expect(story.onceFailed.count < story.count / 2)
    }
  }
}
