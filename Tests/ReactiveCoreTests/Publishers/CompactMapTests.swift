import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct CompactMapTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "CompactMap") { $0.compactMap { $0 } }
    expectStreamWithstandsReentrancy(named: "CompactMap") { $0.compactMap { $0 } }
  }

  @Test func passesWhatIsNotNilAndAsksAgainForTheRest() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.compactMap { $0 > 1 ? "\($0)" : nil } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .max(2))
    #expect(rig.take() == [.subscription("CompactMap"), .requested(.max(1)), .value("2")])
  }

  @Test func combinesWithItselfAndWithMap() {
    let publisher = [1, 2, 3].publisher.eraseToAnyPublisher()
      .compactMap { $0 > 1 ? $0 : nil }.map { $0 + 10 }.compactMap { $0 > 12 ? "\($0)" : nil }
    #expect(type(of: publisher) == Publishers.CompactMap<AnyPublisher<Int, Never>, String>.self)
    var values: [String] = []
    _ = publisher.sink { values.append($0) }
    #expect(values == ["13"])
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.compactMap { $0 } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "CompactMap")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "CompactMap")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.compactMap { $0 } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("CompactMap"), .requested(.unlimited), .value(2)])
  }
}
