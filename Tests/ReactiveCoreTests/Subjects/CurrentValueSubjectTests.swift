import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct CurrentValueSubjectTests {
  typealias Sut = CurrentValueSubject<Int, Oops>

  let name = Happening.subscription("CurrentValueSubject")

  @Test func aValueThatIsSetAfterCompletionIsKeptAndNotSent() {
    let subject = CurrentValueSubject<Int, Oops>(1)
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subject.subscribe(subscriber)
    subject.send(completion: .finished)
    _ = subscriber.history.take()
    subject.value = 42
    #expect(subject.value == 42)
    subject.send(43)
    #expect(subject.value == 42)
    let late = TrackingSubscriber<Int, Oops>(.unlimited)
    subject.subscribe(late)
    #expect(subscriber.history.take() == [])
    #expect(late.history.take() == [.subscription("Empty"), .finished])
  }

  @Test func givesTheCurrentValueOnTheFirstRequest() {
    let subject = Sut(1)
    let subscriber = TrackingSubscriber<Int, Oops>()
    subject.subscribe(subscriber)
    #expect(subscriber.history.take() == [name])
    subscriber.subscription?.request(.max(2))
    #expect(subscriber.history.take() == [.value(1)])
    subject.send(2)
    subject.value = 3
    #expect(subscriber.history.take() == [.value(2)])
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [.value(3)])
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [])
    subject.send(4)
    #expect(subscriber.history.take() == [.value(4)])
  }

  @Test func keepsTheLatestValue() {
    let subject = Sut(1)
    #expect(subject.value == 1)
    subject.value += 5
    #expect(subject.value == 6)
    subject.send(completion: .finished)
    subject.value = 7
    #expect(subject.value == 7)
  }

  @Test func latecomersGetOnlyTheCompletion() {
    let subject = Sut(1)
    subject.send(completion: .failure(Oops(number: 3)))
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subject.subscribe(subscriber)
    #expect(subscriber.history.events == [.subscription("Empty"), .failed(Oops(number: 3))])
  }

  @Test func onlyTheFirstCompletionCountsAndNothingFollows() {
    let subject = Sut(1)
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subscriber.onCompletion = {
      subject.send(completion: .failure(Oops()))
      subject.send(9)
    }
    subject.subscribe(subscriber)
    subject.send(completion: .finished)
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.events == [name, .value(1), .finished])
  }

  @Test func demandReturnedForTheFirstValueCounts() {
    let subject = Sut(0)
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1), perValue: .max(1))
    subject.subscribe(subscriber)
    subject.send(1)
    subject.send(2)
    #expect(subscriber.history.events == [name, .value(0), .value(1), .value(2)])
  }

  @Test func aSubscriberThatSubscribesWithinAValueGetsTheCurrentOneAtOnce() {
    let subject = CurrentValueSubject<Int, Never>(0)
    var inner: [Int] = []
    var countInside = 0
    let outerSubscription = subject.sink { _ in
      let subscription = subject.sink { inner.append($0) }
      countInside = inner.count
      subscription.cancel()
    }
    #expect(countInside == 1)
    subject.send(5)
    #expect(inner == [0, 5])
    outerSubscription.cancel()
  }

  @Test func sendsToItselfOnAConstantStack() {
    let subject = CurrentValueSubject<Int, Never>(0)
    let subscription = subject.sink { if $0 < 300_000 { subject.send($0 + 1) } }
    #expect(subject.value == 300_000)
    subscription.cancel()
  }

  @Test func allSubscribersEndWithTheLatestValueWhenOneSends() {
    let subject = Sut(0)
    let first = TrackingSubscriber<Int, Oops>(.unlimited)
    let second = TrackingSubscriber<Int, Oops>(.unlimited)
    first.onValue = { if $0 == 1 { subject.send(2) } }
    subject.subscribe(first)
    subject.subscribe(second)
    subject.send(1)
    #expect(first.history.events == [name, .value(0), .value(1), .value(2)])
    #expect(second.history.events == [name, .value(0), .value(1), .value(2)])
  }

  @Test func cancellingWithinTheFirstValueTakesEffectAtOnce() {
    let subject = Sut(0)
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subscriber.onValue = { [unowned subscriber] _ in
      subject.send(1)
      subscriber.subscription?.cancel()
    }
    subject.subscribe(subscriber)
    subject.send(2)
    #expect(subscriber.history.events == [name, .value(0)])
  }

  @Test func completionWithinTheFirstValueComesAfterIt() {
    let subject = Sut(0)
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    subscriber.onValue = {
      if $0 == 0 {
        subject.send(1)
        subject.send(completion: .finished)
      }
    }
    subject.subscribe(subscriber)
    #expect(subscriber.history.events == [name, .value(0), .value(1), .finished])
  }

  @Test func requestsEverythingFromASourceAtOnce() {
    let subject = Sut(0)
    var requested: [Subscribers.Demand] = []
    subject.send(subscription: ManualSubscription(onRequest: { requested.append($0) }))
    #expect(requested == [.unlimited])
  }

  enum Ending: CaseIterable { case finish, cancel, cancelWithinValue, finishWithinValue }

  @Test(arguments: Ending.allCases) func releasesEverything(ending: Ending) {
    var released = 0
    weak var weakSubject: Sut?
    do {
      let subject = Sut(0)
      weakSubject = subject
      let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
      subscriber.onDeinit = { released += 1 }
      switch ending {
      case .cancelWithinValue:
        subscriber.onValue = { [unowned subscriber] _ in subscriber.subscription?.cancel() }
      case .finishWithinValue:
        subscriber.onValue = { [unowned subject] _ in subject.send(completion: .finished) }
      case .finish, .cancel: break
      }
      subject.subscribe(subscriber)
      switch ending {
      case .finish: subject.send(completion: .finished)
      case .cancel: subscriber.subscription?.cancel()
      case .cancelWithinValue, .finishWithinValue: break
      }
    }
    #expect(released == 1)
    #expect(weakSubject == nil)
  }

  @Test func theLatestValueIsNeverStaleWhenManySend() async {
    for _ in 0..<50 {
      let subject = UncheckedBox(CurrentValueSubject<Int, Never>(-1))
      let last = Mutex(-1)
      let overlaps = Atomic<Int>(0)
      let isBusy = Atomic<Bool>(false)
      let subscription = subject.value.sink { value in
        if isBusy.exchange(true, ordering: .acquiring) { overlaps.add(1, ordering: .relaxed) }
        last.withLock { $0 = value }
        isBusy.store(false, ordering: .releasing)
      }
      await withTaskGroup(of: Void.self) { group in
        for sender in 0..<4 {
          group.addTask { for number in 0..<100 { subject.value.send(sender * 1000 + number) } }
        }
      }
      #expect(last.withLock { $0 } == subject.value.value)
      #expect(overlaps.load(ordering: .relaxed) == 0)
      subscription.cancel()
    }
  }

  @Test func noValueComesTwiceWhenSubscribingAndSendingRace() async {
    for _ in 0..<100 {
      let subject = UncheckedBox(Sut(0))
      let subscriber = UncheckedBox(TrackingSubscriber<Int, Oops>(.max(3), perValue: .max(1)))
      async let sending: Void = { for value in 1...200 { subject.value.send(value) } }()
      async let subscribing: Void = subject.value.subscribe(subscriber.value)
      _ = await (sending, subscribing)
      let values = subscriber.value.history.events.compactMap { event -> Int? in
        if case .value(let value) = event { value.base as? Int } else { nil }
      }
      #expect(values == values.sorted())
      #expect(Set(values).count == values.count)
      #expect(values.last == 200)
    }
  }

  @Test func aBurstFromWithinTheFirstValueComesInOrder() {
    let subject = CurrentValueSubject<Int, Never>(0)
    var (next, isOrdered) = (0, true)
    let cancellable = subject.sink { value in
      isOrdered = isOrdered && value == next
      next += 1
      if value == 0 {
        for number in 1...50_000 { subject.send(number) }
      }
    }
    #expect(next == 50_001)
    #expect(isOrdered)
    cancellable.cancel()
  }

  @Test func sourcesThatHaveNotEndedAreCancelledHoweverManyCameAndWent() {
    var cancellations = 0
    do {
      let subject = CurrentValueSubject<Int, Never>(0)
      subject.send(subscription: ManualSubscription(onCancel: { cancellations += 1 }))
      for _ in 1...100 { PassthroughSubject<Int, Never>().subscribe(subject).cancel() }
      subject.send(subscription: ManualSubscription(onCancel: { cancellations += 1 }))
      #expect(cancellations == 0)
    }
    #expect(cancellations == 2)
  }
}
