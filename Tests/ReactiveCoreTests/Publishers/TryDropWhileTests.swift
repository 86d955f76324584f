import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryDropWhileTests {
  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryDrop { _ in false } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("TryDropWhile"), .requested(.unlimited)])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "TryDropWhile") { $0.tryDrop { _ in false } }
    expectStreamWithstandsReentrancy(named: "TryDropWhile") { $0.tryDrop { _ in false } }
  }

  @Test func passesEverythingOnceAValueHasPassed() {
    let rig = Rig(demand: .max(2)) { $0.tryDrop { $0 < 2 } }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .none)
    #expect(rig.source.send(1) == .none)
    #expect(rig.take() == [.subscription("TryDropWhile"), .requested(.max(2)), .value(2), .value(1)])
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryDropWhile", sending: [1, 2]) {
      $0.tryDrop { if $0 > 1 { throw Oops(number: $0) } else { return true } }
    }
  }
}
