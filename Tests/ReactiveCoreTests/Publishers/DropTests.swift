import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct DropTests {
  @Test func asksForTheDroppedValuesItself() {
    let rig = Rig(demand: .max(3), perValue: .max(1)) { $0.dropFirst(2) }
    #expect(rig.take() == [.requested(.max(2)), .subscription("Drop"), .requested(.max(3))])
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .none)
    #expect(rig.source.send(3) == .max(1))
    rig.source.send(completion: .finished)
    rig.source.send(4)
    #expect(rig.take() == [.value(3), .finished])
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "Drop") { $0.dropFirst(0) }
    expectEverythingReleased { $0.dropFirst(3) }
  }

  @Test func aCompletionThatComesTooEarlyWaitsForTheSubscription() {
    let subscriber = TrackingSubscriber<Int, Never>()
    [1, 2].publisher.eraseToAnyPublisher().dropFirst(5).subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Drop"), .finished])
  }

  @Test func stopsTheProgramOnANegativeCount() async {
    await #expect(processExitsWith: .failure) {
      Just(1).eraseToAnyPublisher().dropFirst(-1).subscribe(TrackingSubscriber<Int, Never>())
    }
  }
}

@Suite struct DropWhileTests {
  @Test func isOrderly() {
    expectOrderlyStream(named: "DropWhile") { $0.drop { _ in false } }
    expectOrderlyStream(named: "TryDropWhile") { $0.tryDrop { _ in false } }
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

  @Test func failsWithWhatIsThrown() {
    let rig = Rig { $0.tryDrop { if $0 > 1 { throw Oops(number: $0) } else { return true } } }
    #expect(rig.source.send(1) == .max(1))
    rig.source.send(2)
    #expect(
      rig.take() == [
        .subscription("TryDropWhile"), .requested(.unlimited), .cancelled, .failed(Oops(number: 2)),
      ])
  }
}
