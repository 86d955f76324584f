import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FilterTests {
  @Test func passesWhatSatisfiesThePredicateAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(2)) { $0.filter { $0.isMultiple(of: 2) } }
    #expect(rig.take() == [.subscription("Filter"), .requested(.max(2))])
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(rig.source.send(3) == .max(1))
    #expect(rig.take() == [.value(2)])
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.finished])
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "Filter") { $0.filter { _ in true } }
    expectStreamWithstandsReentrancy(named: "Filter") { $0.filter { _ in true } }
  }

  @Test func returnsTheDemandOfDownstream() {
    let rig = Rig(demand: .max(1), perValue: .max(5)) { $0.filter { _ in true } }
    #expect(rig.source.send(1) == .max(5))
  }

  @Test func ignoresWhatComesAfterTheEnd() {
    let rig = Rig { $0.filter { _ in true } }
    rig.source.send(completion: .failure(Oops(number: 1)))
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    rig.subscription.request(.max(1))
    rig.subscription.cancel()
    #expect(rig.take() == [.subscription("Filter"), .requested(.unlimited), .failed(Oops(number: 1))])
  }

  @Test func ignoresWhatComesAfterCancellation() {
    let rig = Rig { $0.filter { _ in true } }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.subscription("Filter"), .requested(.unlimited), .cancelled])
  }

  @Test func cancelsASecondSubscription() {
    let rig = Rig { $0.filter { _ in true } }
    _ = rig.take()
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
    rig.source.send(1)
    #expect(rig.take() == [.value(1)])
  }

  @Test func cancellingFromWithinAValueStopsTheRest() {
    let rig = Rig { $0.filter { _ in true } }
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    rig.source.send(1)
    rig.source.send(2)
    #expect(rig.take() == [.subscription("Filter"), .requested(.unlimited), .value(1), .cancelled])
  }

  @Test func filtersOfFiltersAreOne() {
    let publisher = [1, 2, 3, 6].publisher.eraseToAnyPublisher().filter { $0 > 1 }.filter { $0 < 4 }
    #expect(type(of: publisher) == Publishers.Filter<AnyPublisher<Int, Never>>.self)
    var values: [Int] = []
    _ = publisher.sink { values.append($0) }
    #expect(values == [2, 3])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.filter { _ in true } }
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.filter { _ in true } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("Filter"), .requested(.unlimited), .value(2)])
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.filter { _ in true } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "Filter")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "Filter")
  }
}
