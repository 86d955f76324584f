import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryMapTests {
  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryMap { $0 } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("TryMap"), .requested(.unlimited)])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "TryMap") { $0.tryMap { $0 } }
    expectStreamWithstandsReentrancy(named: "TryMap") { $0.tryMap { $0 } }
  }

  @Test func transformsEachValueAndReturnsTheDemandOfDownstream() {
    let rig = Rig(demand: .max(1), perValue: .max(3)) { $0.tryMap { "\($0)" } }
    #expect(rig.source.send(1) == .max(3))
    #expect(rig.take() == [.subscription("TryMap"), .requested(.max(1)), .value("1")])
  }

  @Test func failsWithWhatIsThrownAndCancels() {
    expectThrownErrorEnds(named: "TryMap", sending: [1, 2], delivering: [10]) {
      $0.tryMap { if $0 == 2 { throw Oops(number: $0) } else { return $0 * 10 } }
    }
  }

  @Test func combinesWithMap() {
    let publisher = Just(1).eraseToAnyPublisher().map { $0 + 1 }.tryMap { $0 + 1 }.map { $0 + 1 }
      .tryMap { "\($0)" }
    #expect(type(of: publisher) == Publishers.TryMap<AnyPublisher<Int, Never>, String>.self)
    var values: [String] = []
    _ = publisher.sink(receiveCompletion: { _ in }) { values.append($0) }
    #expect(values == ["4"])
  }
}
