import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DropWhileTests {
  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.drop { _ in false } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("DropWhile"), .requested(.unlimited)])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "DropWhile") { $0.drop { _ in false } }
    expectStreamWithstandsReentrancy(named: "DropWhile") { $0.drop { _ in false } }
  }

  @Test func asksNoMoreOnceAValueHasPassed() {
    var asked = 0
    let rig = Rig(demand: .max(2)) { source in
      source.drop {
        asked += 1
        return $0 < 2
      }
    }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    rig.source.send(1)
    #expect(asked == 2)
    #expect(rig.take() == [.subscription("DropWhile"), .requested(.max(2)), .value(2), .value(1)])
  }
}
