import Testing

extension ShortStories {
  /// Durable topics across crashes and disk failures, on one thread, made from a seed; `Seeds` says how to choose seeds.
  @Suite struct DurableSeedTests {
    @Test(arguments: Seeds.chosen(for: .durable))
    func whatIsOnDiskIsThereOnceInOrderAndForGood(seed: UInt64) throws {
      let plan = DurablePlan(seed: seed)
      let outcome = try DurableSimulation(plan, keepsLines: Seeds.single != nil).run()
      if Seeds.single != nil {
        print(outcome.lines.joined(separator: "\n"))
        print(
          "\(plan): \(outcome.delivered) records, \(outcome.commits) commits, \(outcome.failedCommits) failed"
        )
      }
      guard !outcome.failures.isEmpty else { return }
      let again = try DurableSimulation(plan, keepsLines: true).run()
      Issue.record(
        """
        Seed \(seed) fails:
        \(outcome.failures.joined(separator: "\n"))
        Before it:
        \(again.lines.suffix(40).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "DurableSeedTests"))
        """)
    }

    @Test(arguments: [3, 8, 21, 34, 93] as [UInt64])
    func aSeedPlaysTheSameStoryEachTime(seed: UInt64) throws {
      let first = try DurableSimulation(DurablePlan(seed: seed), keepsLines: true).run().lines
      let second = try DurableSimulation(DurablePlan(seed: seed), keepsLines: true).run().lines
      let difference = zip(first, second).first { $0 != $1 }
      #expect(difference.map { "\($0)\n\($1)" } == nil)
      #expect(first.count == second.count)
    }

    @Test(arguments: DurableDisk.Flaw.allCases)
    func aFlawedDiskIsNoticed(_ flaw: DurableDisk.Flaw) throws {
      let isNoticed = try (1...60).contains { seed in
        try !DurableSimulation(DurablePlan(seed: seed), flaw: flaw).run().failures.isEmpty
      }
      #expect(isNoticed)
    }
  }
}
