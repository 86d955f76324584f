import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct OutputTests {
  @Test func ignoresWhatComesBeforeTheSubscription() {
    let rig = Rig(subscribesAtOnce: false) { $0.prefix(2) }
    #expect(rig.source.send(1) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Output"), .requested(.unlimited)])
    #expect(Mirror(reflecting: rig.subscription).children.isEmpty)
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "Output") { $0.prefix(5) }
    expectStreamWithstandsReentrancy(named: "Output") { $0.prefix(5) }
  }

  @Test func finishesWithTheLastValueAndCancels() {
    let rig = Rig(perValue: .max(1)) { $0.prefix(2) }
    #expect(rig.source.send(1) == .max(1))
    #expect(rig.source.send(2) == .max(1))
    #expect(rig.source.send(3) == .none)
    rig.source.send(completion: .failure(Oops()))
    #expect(
      rig.take() == [
        .subscription("Output"), .requested(.unlimited), .value(1), .value(2), .cancelled, .finished,
      ])
  }

  @Test func skipsWhatIsBeforeTheRange() {
    let rig = Rig(demand: .max(1)) { $0.output(in: 1...2) }
    #expect(rig.source.send(0) == .max(1))
    #expect(rig.source.send(1) == .none)
    rig.source.send(2)
    #expect(
      rig.take() == [
        .subscription("Output"), .requested(.max(1)), .value(1), .value(2), .cancelled, .finished,
      ])
  }

  @Test func picksOneValue() {
    let rig = Rig { $0.output(at: 1) }
    rig.source.send(5)
    rig.source.send(6)
    #expect(
      rig.take() == [.subscription("Output"), .requested(.unlimited), .value(6), .cancelled, .finished])
  }

  @Test func anEmptyRangeFinishesAtTheFirstValue() {
    let rig = Rig { $0.prefix(0) }
    rig.source.send(5)
    #expect(rig.take() == [.subscription("Output"), .requested(.unlimited), .cancelled, .finished])
  }

  @Test func valuesSentWithinTheLastAreIgnored() {
    let rig = Rig { $0.prefix(1) }
    rig.subscriber.onValue = { [unowned rig] in if $0 < 3 { rig.source.send($0 + 1) } }
    rig.source.send(1)
    #expect(
      rig.take() == [.subscription("Output"), .requested(.unlimited), .value(1), .cancelled, .finished])
  }

  @Test func comparesByUpstreamAndRange() {
    #expect(Just(1).eraseToOutput(2) == Just(1).eraseToOutput(2))
    #expect(Just(1).eraseToOutput(2) != Just(1).eraseToOutput(3))
  }

  @Test func stopsTheProgramOnANegativeRange() async {
    await #expect(processExitsWith: .failure) {
      _ = Publishers.Output(upstream: Just(1), range: -1..<2)
    }
  }

  @Test func aRequestForNothingPasses() {
    let rig = Rig(demand: Subscribers.Demand.none) { $0.prefix(1) }
    #expect(rig.take() == [.subscription("Output"), .requested(.none)])
  }
}

extension Just {
  fileprivate func eraseToOutput(_ length: Int) -> Publishers.Output<Just> {
    Publishers.Output(upstream: self, range: 0..<length)
  }
}
