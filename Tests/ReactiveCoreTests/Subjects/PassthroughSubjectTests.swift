import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct PassthroughSubjectTests {
  typealias Sut = PassthroughSubject<Int, Oops>

  @Test func deliversNoMoreThanAskedFor() {
    let subject = Sut()
    let subscriber = TrackingSubscriber<Int, Oops>(.max(2))
    subject.subscribe(subscriber)
    for value in 1...4 { subject.send(value) }
    subscriber.subscription?.request(.max(1))
    subject.send(5)
    subject.send(6)
    #expect(
      subscriber.history.take() == [
        .subscription("PassthroughSubject"), .value(1), .value(2), .value(5),
      ])
  }

  @Test func addsTheDemandReturnedForAValue() {
    let subject = Sut()
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1), perValue: .max(1))
    subject.subscribe(subscriber)
    for value in 1...3 { subject.send(value) }
    subscriber.demandPerValue = .none
    subject.send(4)
    subject.send(5)
    #expect(
      subscriber.history.take() == [
        .subscription("PassthroughSubject"), .value(1), .value(2), .value(3), .value(4),
      ])
  }

  @Test func eachSubscriberHasItsOwnDemand() {
    let subject = Sut()
    let eager = TrackingSubscriber<Int, Oops>(.unlimited)
    let reserved = TrackingSubscriber<Int, Oops>(.max(1))
    let idle = TrackingSubscriber<Int, Oops>()
    subject.subscribe(eager)
    subject.subscribe(reserved)
    subject.subscribe(idle)
    subject.send(1)
    subject.send(2)
    subject.send(completion: .finished)
    let name = Happening.subscription("PassthroughSubject")
    #expect(eager.history.events == [name, .value(1), .value(2), .finished])
    #expect(reserved.history.events == [name, .value(1), .finished])
    #expect(idle.history.events == [name, .finished])
  }

  @Test func onlyTheFirstCompletionCounts() {
    let subject = Sut()
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subscriber.onCompletion = { subject.send(completion: .failure(Oops())) }
    subject.subscribe(subscriber)
    subject.send(completion: .finished)
    subject.send(completion: .failure(Oops()))
    subject.send(1)
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.events == [.subscription("PassthroughSubject"), .finished])
  }

  @Test func latecomersGetOnlyTheCompletion() {
    let subject = Sut()
    subject.send(completion: .failure(Oops(number: 7)))
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subject.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .failed(Oops(number: 7))])
  }

  @Test func sendsToItselfAMillionTimesOnAConstantStack() {
    let subject = PassthroughSubject<Int, Never>()
    var last = 0
    let subscription = subject.sink { value in
      last += value == last + 1 ? 1 : 0
      if value < 1_000_000 { subject.send(value + 1) }
    }
    subject.send(1)
    #expect(last == 1_000_000)
    subscription.cancel()
  }

  @Test func allSubscribersSeeTheSameOrderWhenOneSends() {
    let subject = Sut()
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    first.onValue = { if $0 == 1 { subject.send(2) } }
    subject.subscribe(first)
    subject.subscribe(second)
    subject.send(1)
    subject.send(completion: .finished)
    #expect(first.history.events == second.history.events)
    #expect(first.history.events.dropFirst() == [.value(1), .value(2), .finished])
  }

  @Test func cancellingFromWithinAValueTakesEffectAtOnce() {
    let subject = Sut()
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    first.onValue = { _ in
      first.subscription?.cancel()
      second.subscription?.cancel()
    }
    subject.subscribe(first)
    subject.subscribe(second)
    subject.send(1)
    subject.send(2)
    #expect(first.history.events.dropFirst() == [.value(1)])
    #expect(second.history.events.dropFirst() == [])
  }

  @Test func aSubscriberThatCancelsInReceiveSubscriptionGetsNothing() {
    let subject = Sut()
    let subscriber = TrackingSubscriber<Int, Oops>()
    subscriber.onSubscription = {
      $0.request(.unlimited)
      $0.cancel()
    }
    subject.subscribe(subscriber)
    subject.send(1)
    subject.send(completion: .finished)
    #expect(subscriber.history.events == [.subscription("PassthroughSubject")])
  }

  @Test func completionDuringReceiveSubscriptionComesAfterIt() {
    let subject = Sut()
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subscriber.onSubscription = { _ in subject.send(completion: .finished) }
    subject.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("PassthroughSubject"), .finished])
  }

  @Test func aSubscriberAddedWhileDeliveringGetsWhatFollows() {
    let subject = Sut()
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    first.onValue = { if $0 == 1 { subject.subscribe(second) } }
    subject.subscribe(first)
    subject.send(1)
    subject.send(2)
    #expect(second.history.events == [.subscription("PassthroughSubject"), .value(2)])
  }

  @Test func requestsFromItsSourcesOnceASubscriberAsks() {
    let subject = Sut()
    let history = History()
    func source() -> ManualSubscription {
      ManualSubscription(
        onRequest: { history.append(.requested($0)) },
        onCancel: { history.append(.cancelled) })
    }
    subject.send(subscription: source())
    let subscriber = TrackingSubscriber<Int, Oops>()
    subject.subscribe(subscriber)
    #expect(history.take() == [])
    subscriber.subscription?.request(.max(1))
    subscriber.subscription?.request(.max(1))
    #expect(history.take() == [.requested(.unlimited)])
    subject.send(subscription: source())
    #expect(history.take() == [.requested(.unlimited)])
  }

  @Test func cancelsItsSourcesWhenReleased() {
    var cancelled = 0
    do {
      let subject = Sut()
      subject.send(subscription: ManualSubscription(onCancel: { cancelled += 1 }))
    }
    #expect(cancelled == 1)
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      let subject = Sut()
      subject.subscribe(TrackingSubscriber<Int, Oops>(Subscribers.Demand.none))
    }
  }

  enum Ending: CaseIterable { case finish, cancel, cancelWithinValue }

  @Test(arguments: Ending.allCases) func releasesEverything(end: Ending) {
    var released = 0
    weak var weakSubject: Sut?
    do {
      let subject = Sut()
      weakSubject = subject
      let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
      subscriber.onDeinit = { released += 1 }
      subject.subscribe(subscriber)
      switch end {
      case .finish: subject.send(completion: .finished)
      case .cancel: subscriber.subscription?.cancel()
      case .cancelWithinValue:
        subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
        subject.send(1)
      }
    }
    #expect(released == 1)
    #expect(weakSubject == nil)
  }

  @Test func manySubscribersComeAndGoInOrder() {
    let subject = PassthroughSubject<Int, Never>()
    var order: [Int] = []
    var subscriptions = (0..<1000).map { number in subject.sink { _ in order.append(number) } }
    for index in stride(from: 0, to: 1000, by: 3) { subscriptions[index].cancel() }
    subscriptions += (1000..<1010).map { number in subject.sink { _ in order.append(number) } }
    subject.send(1)
    #expect(order == (0..<1010).filter { $0 >= 1000 || !$0.isMultiple(of: 3) })
    order = []
    for subscription in subscriptions { subscription.cancel() }
    subject.send(2)
    #expect(order == [])
  }

  @Test func sendingFromManyThreadsIsSerialAndKeepsTheOrderOfEachThread() async {
    let subject = PassthroughSubject<(sender: Int, number: Int), Never>()
    let shared = UncheckedBox(subject)
    let busy = Atomic<Int>(0)
    var overlaps = 0
    var lastNumbers = [-1, -1, -1, -1]
    var disorder = 0
    let subscription = subject.sink { value in
      if busy.add(1, ordering: .relaxed).oldValue != 0 { overlaps += 1 }
      if value.number <= lastNumbers[value.sender] { disorder += 1 }
      lastNumbers[value.sender] = value.number
      busy.subtract(1, ordering: .relaxed)
    }
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<4 {
        group.addTask {
          for number in 0..<5000 { shared.value.send((sender, number)) }
        }
      }
    }
    #expect(lastNumbers == [4999, 4999, 4999, 4999])
    #expect(overlaps == 0)
    #expect(disorder == 0)
    subscription.cancel()
  }

  @Test func subscribingCancellingAndCompletingMayRace() async {
    for _ in 0..<200 {
      let subject = UncheckedBox(Sut())
      let subscribers = (0..<4).map { _ in UncheckedBox(TrackingSubscriber<Int, Oops>(.unlimited)) }
      await withTaskGroup(of: Void.self) { group in
        for subscriber in subscribers {
          group.addTask {
            subject.value.subscribe(subscriber.value)
          }
        }
        group.addTask {
          for value in 0..<10 { subject.value.send(value) }
          subject.value.send(completion: .finished)
        }
      }
      for subscriber in subscribers {
        let events = subscriber.value.history.events
        #expect(events.filter { $0 == .finished }.count == 1)
        #expect(events.last == .finished)
      }
    }
  }
}
