import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryFilterTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "TryFilter") { $0.tryFilter { _ in true } }
    expectStreamWithstandsReentrancy(named: "TryFilter") { $0.tryFilter { _ in true } }
  }

  @Test func passesWhatSatisfiesThePredicateAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(2), perValue: .max(4)) { $0.tryFilter { $0.isMultiple(of: 2) } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .max(4))
    #expect(rig.take() == [.subscription("TryFilter"), .requested(.max(2)), .value(2)])
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryFilter", sending: [1, 2, 3], delivering: [2]) {
      $0.tryFilter { if $0 > 2 { throw Oops(number: $0) } else { return $0 == 2 } }
    }
  }

  @Test func combinesWithFilter() {
    let publisher = [1, 2, 3, 4].publisher.eraseToAnyPublisher()
      .filter { $0 > 1 }.tryFilter { $0 > 2 }.filter { $0 > 3 }
    #expect(type(of: publisher) == Publishers.TryFilter<AnyPublisher<Int, Never>>.self)
    var values: [Int] = []
    _ = publisher.sink(receiveCompletion: { _ in }) { values.append($0) }
    #expect(values == [4])
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.tryFilter { _ in true } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "TryFilter")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "TryFilter")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryFilter { _ in true } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("TryFilter"), .requested(.unlimited), .value(2)])
  }
}
