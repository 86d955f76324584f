import Testing

extension Stories {
  /// Complete brokers with many clients, on one thread, made from a seed; `Seeds` says how to choose seeds.
  @Suite struct SeedTests {
    @Test(arguments: Seeds.chosen(for: .everything))
    func everySubscriberGetsWhatItIsOwedAndNothingElse(seed: UInt64) throws {
      let outcome = try Simulation(Self.scenario(seed), keepsLines: Seeds.single != nil).run()
      if Seeds.single != nil { print(outcome.lines.joined(separator: "\n")) }
      guard !outcome.failures.isEmpty else { return }
      Issue.record(Comment(rawValue: try Self.report(outcome)))
    }

    @Test(arguments: [3, 8, 21, 34] as [UInt64])
    func aSeedPlaysTheSameStoryEachTime(seed: UInt64) throws {
      let first = try Simulation(.random(seed)).run()
      let second = try Simulation(.random(seed), keepsLines: true).run()
      #expect(first.hash == second.hash)
      #expect(first.failures == second.failures)
      #expect(!second.lines.isEmpty)
      let other = try Simulation(.random(seed + 1)).run()
      #expect(other.hash != first.hash)
    }

    @Test(arguments: BrokerFlaw.allCases)
    func aFlawedBrokerIsNoticed(_ flaw: BrokerFlaw) throws {
      let scenarios = (1...2_000 as ClosedRange<UInt64>).lazy.map(Scenario.random)
      let isNoticed = try scenarios.contains { scenario in
        guard flaw.isPossible(in: scenario) else { return false }
        return try Simulation(scenario, flaw: flaw).run().failures.contains { $0.contains(flaw.symptom) }
      }
      #expect(isNoticed)
    }

    private static func scenario(_ seed: UInt64) -> Scenario {
      Story.everything.failedWithoutChanges.contains(seed) ? .random(seed) : .random(seed).withChanges()
    }

    /// Replays the seed and reports the events that led to the failure.
    private static func report(_ outcome: Outcome) throws -> String {
      let again = try Simulation(scenario(outcome.seed), keepsLines: true).run()
      let same = again.hash == outcome.hash ? "" : " (and plays differently the second time)"
      return """
        Seed \(outcome.seed) fails\(same):
        \(outcome.failures.joined(separator: "\n"))
        Before it:
        \(again.lines.suffix(40).joined(separator: "\n"))
        \(Seeds.repeating(outcome.seed, of: "SeedTests"))
        """
    }
  }
}
