import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct RemoveDuplicatesTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "RemoveDuplicates") { $0.removeDuplicates { _, _ in false } }
    expectStreamWithstandsReentrancy(named: "RemoveDuplicates") { $0.removeDuplicates { _, _ in false } }
  }

  @Test func dropsWhatEqualsTheValueBefore() {
    expectOrderlyStream(named: "RemoveDuplicates") { $0.removeDuplicates() }
    let rig = Rig(demand: .max(9)) { $0.removeDuplicates() }
    for value in [1, 1, 2, 2, 1] { rig.source.send(value) }
    #expect(
      rig.take() == [
        .subscription("RemoveDuplicates"), .requested(.max(9)), .value(1), .value(2), .value(1),
      ])
  }

  @Test func comparesWithTheLastValuePassedOn() {
    let rig = Rig(demand: .max(9)) { $0.removeDuplicates { $1 - $0 < 2 } }
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .max(1))
    #expect(rig.source.send(3) == .none)
    #expect(rig.take() == [.subscription("RemoveDuplicates"), .requested(.max(9)), .value(1), .value(3)])
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.removeDuplicates() }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "RemoveDuplicates")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "RemoveDuplicates")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.removeDuplicates() }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("RemoveDuplicates"), .requested(.unlimited), .value(2)])
  }
}
