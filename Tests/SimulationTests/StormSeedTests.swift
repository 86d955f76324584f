import SluiceIO
import Testing

extension ShortStories {
  /// The scenario of all features, with additional clients that send frames of every type, valid and invalid.
  @Suite struct StormSeedTests {
    @Test(arguments: Seeds.chosen(for: .storms))
    func thoseWhoBehaveGetWhatTheyAreOwedAmongThoseWhoDont(seed: UInt64) throws {
      let outcome = try Simulation(.stormy(seed), keepsLines: Seeds.single != nil).run()
      if Seeds.single != nil { print(outcome.lines.joined(separator: "\n")) }
      #expect(
        outcome.failures.isEmpty,
        """
        Seed \(seed) fails:
        \(outcome.failures.prefix(5).joined(separator: "\n"))
        \(Seeds.repeating(seed, of: "StormSeedTests"))
        """)
    }
  }
}

extension Scenario {
  /// The scenario of that seed, with storms of frames.
  static func stormy(_ seed: UInt64) -> Scenario {
    var scenario = random(seed)
    var random = SeededRandom(seed: seed &* 0xbf58_476d_1ce4_e5b9)
    for _ in 0..<random.next(in: 2...5) {
      scenario.disturbances.append(
        Disturbance(
          time: random.next(in: .zero...scenario.length),
          kind: .attack(Attack(kind: .storm, seed: random.next()))))
    }
    scenario.disturbances.sort { $0.time < $1.time }
    return scenario
  }
}
