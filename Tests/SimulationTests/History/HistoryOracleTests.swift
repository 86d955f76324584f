import Testing

extension ShortStories {
  /// Backups and copies that replace a broker's store, on one thread, made from a seed; `Seeds` says how to choose seeds.
  @Suite struct HistoryOracleTests {
    @Test(arguments: Seeds.chosen(for: .history))
    func eachSubscriberHasOneHistoryUpToACutThatItIsTold(seed: UInt64) throws {
      let outcome = try HistorySimulation(seed: seed).run()
      if Seeds.single != nil {
        print(outcome.lines.joined(separator: "\n"))
        print("\(outcome.delivered) records, \(outcome.cuts) cuts")
      }
      guard !outcome.failures.isEmpty else { return }
      Issue.record(
        """
        Seed \(seed) fails:
        \(outcome.failures.prefix(10).joined(separator: "\n"))
        Before it:
        \(outcome.lines.suffix(40).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "HistoryOracleTests"))
        """)
    }

    @Test func storiesHaveCuts() throws {
      let outcomes = try (1...20).map { try HistorySimulation(seed: $0).run() }
      #expect(outcomes.reduce(0) { $0 + $1.cuts } > 20)
      #expect(outcomes.reduce(0) { $0 + $1.delivered } > 1_000)
    }

    @Test(arguments: HistorySimulation.Flaw.allCases)
    func aFlawIsNoticed(_ flaw: HistorySimulation.Flaw) throws {
      let isNoticed = try (1...60).contains { seed in
        try !HistorySimulation(seed: seed, flaw: flaw).run().failures.isEmpty
      }
      #expect(isNoticed)
    }
  }
}
