import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CollectTests {
  @Test func takesEverythingAndDeliversAtTheEnd() {
    let rig = Rig(demand: .max(1)) { $0.collect() }
    #expect(rig.take() == [.subscription("Collect"), .requested(.unlimited)])
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.value([1, 2]), .finished])
  }

  @Test func waitsWithTheResultUntilAskedFor() {
    let rig = Rig(demand: nil) { $0.collect() }
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.send(2)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Collect"), .requested(.unlimited)])
    rig.subscription.request(.max(1))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.value([1]), .finished])
  }

  @Test func deliversAnEmptyArrayForNothing() {
    let rig = Rig { $0.collect() }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Collect"), .requested(.unlimited), .value([Int]()), .finished])
  }

  @Test func deliversNothingOnFailure() {
    let rig = Rig(demand: nil) { $0.collect() }
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops(number: 1)))
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("Collect"), .requested(.unlimited), .failed(Oops(number: 1))])
  }

  @Test func cancelsUpstreamOnceAndForgetsTheRest() {
    let rig = Rig { $0.collect() }
    rig.source.send(1)
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(2)
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    #expect(rig.take() == [.subscription("Collect"), .requested(.unlimited), .cancelled])
  }

  @Test func cancelsASecondSubscription() {
    let rig = Rig { $0.collect() }
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Collect"), .requested(.unlimited), .cancelled])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.collect() }
  }

  @Test func isAReduction() {
    expectReduction(named: "Collect", of: [1, 2], delivers: [1, 2]) { $0.collect() }
  }
}
