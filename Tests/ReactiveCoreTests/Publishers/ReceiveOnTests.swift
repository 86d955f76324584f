import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct ReceiveOnTests {
  @Test func deliversOnTheScheduler() {
    let scheduler = ManualScheduler()
    let rig = Rig(demand: .max(2), perValue: .max(1)) { $0.receive(on: scheduler) }
    #expect(rig.take() == [])
    scheduler.runWaiting()
    #expect(rig.take() == [.subscription("ReceiveOn"), .requested(.max(2))])
    #expect(rig.source.send(1) == .none)
    #expect(rig.source.send(2) == .none)
    rig.source.send(completion: .finished)
    #expect(rig.take() == [])
    #expect(scheduler.pending == 1)
    scheduler.runWaiting()
    #expect(rig.take() == [.value(1), .value(2), .finished])
  }

  @Test func passesReturnedDemandUpstream() {
    let scheduler = ManualScheduler()
    let rig = Rig(demand: .max(1), perValue: .max(3)) { $0.receive(on: scheduler) }
    scheduler.runWaiting()
    _ = rig.take()
    rig.source.send(1)
    scheduler.runWaiting()
    #expect(rig.take() == [.value(1), .requested(.max(3))])
  }

  @Test func whatComesDuringAHopWaitsForTheNext() {
    let scheduler = ManualScheduler()
    let rig = Rig { $0.receive(on: scheduler) }
    scheduler.runWaiting()
    _ = rig.take()
    rig.subscriber.onValue = { [unowned rig] in if $0 < 3 { rig.source.send($0 + 1) } }
    rig.source.send(1)
    scheduler.runWaiting()
    #expect(rig.take() == [.value(1)])
    scheduler.runWaiting()
    #expect(rig.take() == [.value(2)])
    scheduler.advance()
    #expect(rig.take() == [.value(3)])
    #expect(scheduler.pending == 0)
  }

  @Test func cancellationDropsWhatWaits() {
    let scheduler = ManualScheduler()
    let rig = Rig { $0.receive(on: scheduler) }
    scheduler.runWaiting()
    rig.source.send(1)
    rig.source.send(2)
    rig.subscriber.onValue = { [unowned rig] _ in rig.subscription.cancel() }
    scheduler.advance()
    rig.source.send(3)
    rig.source.send(completion: .finished)
    scheduler.advance()
    #expect(rig.take() == [.subscription("ReceiveOn"), .requested(.unlimited), .value(1), .cancelled])
  }

  @Test func ignoresWhatComesAfterTheEnd() {
    let scheduler = ManualScheduler()
    let rig = Rig { $0.receive(on: scheduler) }
    rig.source.send(completion: .failure(Oops(number: 1)))
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.sendSubscription()
    rig.subscriber.initialDemand = nil
    scheduler.advance()
    #expect(rig.take() == [.cancelled, .subscription("ReceiveOn"), .failed(Oops(number: 1))])
  }

  @Test func anImmediateSchedulerNeedsNoMoreStackForAMillionValues() {
    let subject = PassthroughSubject<Int, Never>()
    var last = 0
    let subscription = subject.receive(on: ImmediateScheduler.shared).sink { value in
      last = value
      if value < 1_000_000 { subject.send(value + 1) }
    }
    subject.send(1)
    #expect(last == 1_000_000)
    subscription.cancel()
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.receive(on: ImmediateScheduler.shared) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "ReceiveOn") { $0.receive(on: ImmediateScheduler.shared) }
  }
}
