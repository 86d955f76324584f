import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryCatchTests {
  @Test func goesOnWithTheOtherPublisher() {
    let other = ManualPublisher<Int, Oops>()
    let rig = Rig(demand: .max(3)) { $0.tryCatch { _ in other } }
    rig.source.send(1)
    rig.source.send(completion: .failure(Oops()))
    #expect(other.history.take() == [.requested(.max(2))])
    other.send(2)
    other.send(completion: .failure(Oops(number: 5)))
    other.send(3)
    #expect(
      rig.take() == [
        .subscription("TryCatch"), .requested(.max(3)), .value(1), .value(2), .failed(Oops(number: 5)),
      ])
  }

  @Test func failsWithWhatTheHandlerThrows() {
    let rig = Rig(demand: nil) { source in
      source.tryCatch { (error: Oops) -> Just<Int> in throw Oops(number: error.number * 2) }
    }
    rig.source.send(completion: .failure(Oops(number: 4)))
    rig.source.send(completion: .failure(Oops(number: 5)))
    rig.source.send(1)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("TryCatch"), .failed(Oops(number: 8))])
  }

  @Test func aFinishPasses() {
    let rig = Rig { $0.tryCatch { _ in Just(1) } }
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("TryCatch"), .requested(.unlimited), .finished])
  }

  @Test func cancelsWhicheverIsUnderWay() {
    let other = ManualPublisher<Int, Never>()
    let rig = Rig { $0.tryCatch { _ in other } }
    rig.source.send(completion: .failure(Oops()))
    rig.subscription.cancel()
    other.send(1)
    #expect(other.history.take() == [.requested(.unlimited), .cancelled])
    #expect(rig.take() == [.subscription("TryCatch"), .requested(.unlimited)])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.tryCatch { _ in Just(1) } }
    expectEverythingReleased { $0.tryCatch { (_: Oops) -> Just<Int> in throw Oops() } }
  }

  @Test func ignoresACompletionThatComesBeforeTheSubscription() {
    let rig = Rig(demand: .max(1), subscribesAtOnce: false) { $0.tryCatch { _ in Just(2) } }
    rig.source.send(completion: .failure(Oops()))
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(completion: .failure(Oops()))
    #expect(rig.take() == [.subscription("TryCatch"), .requested(.max(1)), .value(2), .finished])
  }

  @Test func withstandsReentrancy() {
    func rethrow(_ error: Oops) throws -> Empty<Int, Oops> { throw error }
    expectStreamWithstandsReentrancy(named: "TryCatch") { $0.tryCatch(rethrow) }
  }
}
