import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct ScanTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "Scan") { $0.scan(0, +) }
    expectOrderlyStream(named: "TryScan") { $0.tryScan(0) { $0 + $1 } }
  }

  @Test func passesOnTheRunningResult() {
    let rig = Rig(demand: .max(1), perValue: .max(2)) { $0.scan("") { "\($0)\($1)" } }
    for value in 1...3 { #expect(rig.source.send(value) == .max(2)) }
    #expect(
      rig.take() == [.subscription("Scan"), .requested(.max(1)), .value("1"), .value("12"), .value("123")])
  }

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryScan(0) { if $1 > 2 { throw Oops(number: $1) } else { return $0 + $1 } } }
    for value in 1...4 { rig.source.send(value) }
    #expect(
      rig.take() == [
        .subscription("TryScan"), .requested(.unlimited), .value(1), .value(3), .cancelled,
        .failed(Oops(number: 3)),
      ])
  }
}
