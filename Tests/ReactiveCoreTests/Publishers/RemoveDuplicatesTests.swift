import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct RemoveDuplicatesTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "RemoveDuplicates") { $0.removeDuplicates() }
    expectOrderlyStream(named: "TryRemoveDuplicates") { $0.tryRemoveDuplicates { $0 == $1 } }
  }

  @Test func comparesWithTheLastValuePassedOn() {
    let rig = Rig(demand: .max(9)) { $0.removeDuplicates { $1 - $0 < 2 } }
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .max(1))
    #expect(rig.source.send(3) == .none)
    #expect(rig.take() == [.subscription("RemoveDuplicates"), .requested(.max(9)), .value(1), .value(3)])
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryRemoveDuplicates { if $1 > 2 { throw Oops(number: $1) } else { return $0 == $1 } } }
    for value in [1, 1, 2, 3] { rig.source.send(value) }
    #expect(
      rig.take() == [
        .subscription("TryRemoveDuplicates"), .requested(.unlimited), .value(1), .value(2), .cancelled,
        .failed(Oops(number: 3)),
      ])
  }
}
