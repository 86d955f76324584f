import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryCompactMapTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "TryCompactMap") { $0.tryCompactMap { $0 } }
    expectStreamWithstandsReentrancy(named: "TryCompactMap") { $0.tryCompactMap { $0 } }
  }

  @Test func passesWhatIsNotNilAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(1)) { $0.tryCompactMap { $0 > 1 ? "\($0)" : nil } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(rig.take() == [.subscription("TryCompactMap"), .requested(.max(1)), .value("2")])
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryCompactMap", sending: [1, 2, 3], delivering: [20]) {
      $0.tryCompactMap { if $0 > 2 { throw Oops(number: $0) } else { return $0 == 2 ? 20 : nil } }
    }
  }

  @Test func combinesWithItself() {
    let publisher = [1, 2].publisher.eraseToAnyPublisher()
      .tryCompactMap { (value: Int) -> Int? in value }
      .compactMap { (value: Int) -> Int? in value > 1 ? value : nil }
    #expect(type(of: publisher) == Publishers.TryCompactMap<AnyPublisher<Int, Never>, Int>.self)
    var values: [Int] = []
    _ = publisher.sink(receiveCompletion: { _ in }) { values.append($0) }
    #expect(values == [2])
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.tryCompactMap { $0 } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "TryCompactMap")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "TryCompactMap")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryCompactMap { $0 } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("TryCompactMap"), .requested(.unlimited), .value(2)])
  }
}
