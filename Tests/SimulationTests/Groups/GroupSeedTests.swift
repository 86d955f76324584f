import Testing

extension ShortStories {
  /// Groups of unreliable workers, on one thread, made from a seed; `Seeds` says how to choose seeds.
  @Suite struct GroupSeedTests {
    @Test(arguments: Seeds.chosen(for: .groups))
    func everyRecordIsDoneBySomebodyAndByNobodyElseAtATime(seed: UInt64) throws {
      let plan = GroupPlan(seed: seed)
      let (failures, received) = try GroupSimulation(plan).run()
      if Seeds.single != nil { print("\(plan): \(received) deliveries") }
      guard !failures.isEmpty else { return }
      Issue.record(
        """
        Seed \(seed) (\(plan)) fails:
        \(failures.joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "GroupSeedTests"))
        """)
    }

    @Test func aRetryThatComesTooSoonIsNoticed() throws {
      let isNoticed = try (1...400 as ClosedRange<UInt64>).contains { seed in
        var plan = GroupPlan(seed: seed)
        guard plan.showsDelays else { return false }
        plan.hidesRetries = true
        return try GroupSimulation(plan).run().failures.contains { $0.contains("before its time") }
      }
      #expect(isNoticed)
    }
  }
}
