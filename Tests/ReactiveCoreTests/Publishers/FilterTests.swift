import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct FilterTests {
  @Test func passesWhatSatisfiesThePredicateAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(2)) { $0.filter { $0.isMultiple(of: 2) } }
    #expect(rig.take() == [.subscription("Manual"), .requested(.max(2))])
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(rig.source.send(3) == .max(1))
    #expect(rig.take() == [.value(2)])
    rig.source.send(completion: .finished)
    #expect(rig.take() == [.finished])
  }

  @Test func withstandsReentrancy() {
    expectTransparentStreamWithstandsReentrancy { $0.filter { _ in true } }
  }

  @Test func returnsTheDemandOfDownstream() {
    let rig = Rig(demand: .max(1), perValue: .max(5)) { $0.filter { _ in true } }
    #expect(rig.source.send(1) == .max(5))
  }

  @Test func isTransparent() {
    let rig = Rig(demand: nil) { $0.filter { $0 > 1 } }
    #expect(rig.source.subscriber?.description == "Filter")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "Filter")
    #expect(rig.source.subscriber?.customMirror.children.isEmpty == true)
    rig.subscription.cancel()
    rig.source.send(2)
    rig.source.send(completion: .failure(Oops(number: 3)))
    rig.source.sendSubscription()
    // It holds no state, so the subscriber ignores values of a source after the end.
    #expect(
      rig.take() == [
        .subscription("Manual"), .cancelled, .value(2), .failed(Oops(number: 3)), .subscription("Manual"),
      ])
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
    expectClosureReleased { source, token in source.filter { _ in withExtendedLifetime(token) { true } } }
  }
}
