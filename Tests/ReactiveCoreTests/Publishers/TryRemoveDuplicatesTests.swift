import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryRemoveDuplicatesTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "TryRemoveDuplicates") { $0.tryRemoveDuplicates { _, _ in false } }
    expectStreamWithstandsReentrancy(named: "TryRemoveDuplicates") {
      $0.tryRemoveDuplicates { _, _ in false }
    }
  }

  @Test func comparesWithTheLastValuePassedOn() {
    let rig = Rig(demand: .max(9)) { $0.tryRemoveDuplicates { $1 - $0 < 2 } }
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .max(1))
    #expect(rig.source.send(3) == .none)
    #expect(rig.take() == [.subscription("TryRemoveDuplicates"), .requested(.max(9)), .value(1), .value(3)])
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryRemoveDuplicates", sending: [1, 1, 2, 3], delivering: [1, 2]) {
      $0.tryRemoveDuplicates { if $1 > 2 { throw Oops(number: $1) } else { return $0 == $1 } }
    }
  }

  @Test func showsDownstream() {
    let rig = Rig { $0.tryRemoveDuplicates { $0 == $1 } }
    #expect(Mirror(reflecting: rig.subscription).children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.customMirror.children.map(\.label) == ["downstream"])
    #expect(rig.source.subscriber?.description == "TryRemoveDuplicates")
    #expect(rig.source.subscriber?.playgroundDescription as? String == "TryRemoveDuplicates")
  }

  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryRemoveDuplicates { $0 == $1 } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    rig.source.send(2)
    #expect(rig.take() == [.subscription("TryRemoveDuplicates"), .requested(.unlimited), .value(2)])
  }
}
