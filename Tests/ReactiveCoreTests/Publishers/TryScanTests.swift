import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct TryScanTests {
  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.tryScan(0) { $0 + $1 } }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("TryScan"), .requested(.unlimited)])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "TryScan") { $0.tryScan(0) { $0 + $1 } }
    expectStreamWithstandsReentrancy(named: "TryScan") { $0.tryScan(0) { $0 + $1 } }
  }

  @Test func passesOnTheRunningResult() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.tryScan("") { "\($0)\($1)" } }
    for value in 1...2 { #expect(rig.source.send(value) == .max(2)) }
    #expect(rig.take() == [.subscription("TryScan"), .requested(.max(1)), .value("1"), .value("12")])
  }

  @Test func failsWithWhatIsThrown() {
    expectThrownErrorEnds(named: "TryScan", sending: [1, 2, 3], delivering: [1, 3]) {
      $0.tryScan(0) { if $1 > 2 { throw Oops(number: $1) } else { return $0 + $1 } }
    }
  }
}
