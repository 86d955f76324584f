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
  }
}
