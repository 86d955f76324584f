import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct MapErrorTests {
  @Test func transformsTheErrorAndNothingElse() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.mapError { Oops(number: $0.number + 1) } }
    #expect(rig.source.send(1) == .max(2))
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(
      rig.take() == [.subscription("Manual"), .requested(.max(1)), .value(1), .failed(Oops(number: 2))])
    #expect(rig.source.subscriber?.description == "MapError")
  }

  @Test func aFinishStaysAFinish() {
    let rig = Rig { $0.mapError { _ in Oops() } }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Manual"), .requested(.unlimited), .finished])
  }

  @Test func cancellationReachesTheSource() {
    let rig = Rig(demand: nil) { $0.mapError { $0 } }
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("Manual"), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.mapError { $0 } }
    expectClosureReleased { source, token in
      source.mapError { error in withExtendedLifetime(token) { error } }
    }
  }

  @Test func calledBackItPassesEverythingOn() {
    expectTransparentStreamWithstandsReentrancy { $0.mapError { $0 } }
  }
}
