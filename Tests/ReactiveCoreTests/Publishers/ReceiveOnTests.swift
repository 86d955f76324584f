import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct ReceiveOnTests {
  @Test func deliversOnTheScheduler() {
    let scheduler = ManualScheduler()
    let rig = Rig(demand: .max(2), perValue: .max(1)) { $0.receive(on: scheduler) }
    #expect(rig.take() == [.subscription("ReceiveOn"), .requested(.max(2))])
    #expect(scheduler.pending == 0)
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
    _ = rig.take()
    rig.source.send(1)
    scheduler.runWaiting()
    #expect(rig.take() == [.value(1), .requested(.max(3))])
  }

  @Test func whatComesDuringAHopWaitsForTheNext() {
    let scheduler = ManualScheduler()
    let rig = Rig { $0.receive(on: scheduler) }
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
    scheduler.advance()
    #expect(
      rig.take() == [
        .subscription("ReceiveOn"), .requested(.unlimited), .cancelled, .failed(Oops(number: 1)),
      ])
  }

  @Test func whatIsSentRightAfterSubscribingArrives() {
    let scheduler = ManualScheduler()
    let subject = PassthroughSubject<Int, Never>()
    let current = CurrentValueSubject<Int, Never>(0)
    final class Model {
      @Published var count = 0
    }
    let model = Model()
    var values: [[Int]] = [[], [], []]
    let subscriptions = [
      subject.receive(on: scheduler).sink { values[0].append($0) },
      current.receive(on: scheduler).sink { values[1].append($0) },
      model.$count.receive(on: scheduler).sink { values[2].append($0) },
    ]
    for number in 1...2 {
      subject.send(number)
      current.send(number)
      model.count = number
    }
    #expect(values == [[], [], []])
    scheduler.advance()
    #expect(values == [[1, 2], [0, 1, 2], [0, 1, 2]])
    withExtendedLifetime(subscriptions) {}
  }

  /// Values that upstream sends while downstream gets its subscription arrive after it, and on the scheduler.
  @Test func aHopThatComesTooEarlyIsRepeated() {
    let scheduler = ManualScheduler()
    let rig = Rig(demand: nil, subscribesAtOnce: false) { $0.receive(on: scheduler) }
    rig.subscriber.onSubscription = { [unowned rig] subscription in
      subscription.request(.unlimited)
      rig.source.send(1)
      rig.source.send(completion: .finished)
      scheduler.advance()
      #expect(rig.take() == [.subscription("ReceiveOn"), .requested(.unlimited)])
    }
    rig.source.sendSubscription()
    #expect(rig.take() == [])
    scheduler.advance()
    #expect(rig.take() == [.value(1), .finished])
    #expect(scheduler.pending == 0)
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

  @Test func whatFallsDueEarlyGoesThroughTheScheduler() {
    expectEarlyDeliveriesGoThroughTheScheduler(after: 13) { $0.receive(on: $1) }
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.receive(on: ImmediateScheduler.shared) }
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "ReceiveOn") { $0.receive(on: ImmediateScheduler.shared) }
  }
}
