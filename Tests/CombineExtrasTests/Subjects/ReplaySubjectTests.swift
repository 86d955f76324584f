import Dispatch
import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct ReplaySubjectTests {
  typealias Sut = ReplaySubject<Int, Oops>
  typealias Tracker = TrackingSubscriber<Int, Oops>

  let name = Happening.subscription("ReplaySubject")

  func values(_ numbers: some Sequence<Int>) -> [Happening] { numbers.map { .value($0) } }

  @Test func theExampleDoesWhatItSays() {
    var printed: [Int] = []
    let scores = ReplaySubject<Int, Never>(bufferSize: 2)
    scores.send(1)
    scores.send(2)
    scores.send(3)
    let subscription = scores.sink { printed.append($0) }
    #expect(printed == [2, 3])
    scores.send(4)
    #expect(printed == [2, 3, 4])
    subscription.cancel()
  }

  @Test func aLatecomerGetsWhatIsKeptAsItAsksForItThenWhatFollows() {
    let subject = Sut(bufferSize: 3)
    for number in 1...5 { subject.send(number) }
    let tracker = Tracker()
    subject.subscribe(tracker)
    #expect(tracker.history.take() == [name])
    tracker.subscription?.request(.max(2))
    #expect(tracker.history.take() == values([3, 4]))
    subject.send(6)
    #expect(tracker.history.take() == [])
    tracker.subscription?.request(.max(3))
    #expect(tracker.history.take() == values([5, 6]))
    subject.send(7)
    subject.send(8)
    #expect(tracker.history.take() == values([7]))
  }

  @Test func keepsEverythingUnlessToldOtherwise() {
    let subject = Sut()
    for number in 0..<10_000 { subject.send(number) }
    let tracker = Tracker(.unlimited)
    subject.subscribe(tracker)
    #expect(tracker.history.take() == [name] + values(0..<10_000))
  }

  @Test func withABufferOfNothingItIsAPassthroughSubject() {
    let subject = Sut(bufferSize: 0)
    let tracker = Tracker(.max(1))
    let idle = Tracker()
    subject.subscribe(tracker)
    subject.subscribe(idle)
    for number in 1...3 { subject.send(number) }
    tracker.subscription?.request(.max(1))
    subject.send(4)
    subject.send(completion: .finished)
    #expect(tracker.history.take() == [name] + values([1, 4]) + [.finished])
    #expect(idle.history.take() == [name, .finished])
  }

  @Test func oneWhoFallsBehindGoesOnWithTheOldestKept() {
    let subject = Sut(bufferSize: 2)
    let tracker = Tracker(.max(1))
    subject.subscribe(tracker)
    for number in 1...6 { subject.send(number) }
    tracker.subscription?.request(.max(1))
    tracker.subscription?.request(.max(5))
    subject.send(7)
    #expect(tracker.history.take() == [name] + values([1, 5, 6, 7]))
  }

  @Test func oneWhoHasAskedMissesNothingHoweverBusy() {
    let subject = Sut(bufferSize: 1)
    let tracker = Tracker(.max(4))
    tracker.onValue = { if $0 == 1 { for number in 2...8 { subject.send(number) } } }
    subject.subscribe(tracker)
    subject.send(1)
    tracker.subscription?.request(.unlimited)
    #expect(tracker.history.take() == [name] + values([1, 2, 3, 4, 8]))
  }

  @Test func oneWhoAsksForAValueAtATimeMayFallBehindWhileItIsBusy() {
    let subject = Sut(bufferSize: 2)
    let tracker = Tracker(.max(1), perValue: .max(1))
    tracker.onValue = { if $0 == 1 { for number in 2...8 { subject.send(number) } } }
    subject.subscribe(tracker)
    subject.send(1)
    subject.send(completion: .finished)
    #expect(tracker.history.take() == [name] + values([1, 7, 8]) + [.finished])
  }

  @Test func addsTheDemandReturnedForAValue() {
    let subject = Sut(bufferSize: 10)
    for number in 1...3 { subject.send(number) }
    let tracker = Tracker(.max(1), perValue: .max(1))
    subject.subscribe(tracker)
    subject.send(4)
    tracker.demandPerValue = .none
    subject.send(5)
    subject.send(6)
    #expect(tracker.history.take() == [name] + values(1...5))
  }

  @Test(arguments: [true, false]) func theCompletionComesAfterTheValues(fails: Bool) {
    let subject = Sut(bufferSize: 2)
    let early = Tracker()
    subject.subscribe(early)
    for number in 1...3 { subject.send(number) }
    subject.send(completion: fails ? .failure(Oops(number: 9)) : .finished)
    let end: Happening = fails ? .failed(Oops(number: 9)) : .finished
    subject.send(completion: .finished)
    subject.send(4)
    let late = Tracker(.unlimited)
    subject.subscribe(late)
    #expect(late.history.take() == [name] + values([2, 3]) + [end])
    #expect(early.history.take() == [name])
    early.subscription?.request(.max(1))
    #expect(early.history.take() == values([2]))
    early.subscription?.request(.max(1))
    #expect(early.history.take() == values([3]) + [end])
    early.subscription?.request(.max(1))
    #expect(early.history.take() == [])
  }

  @Test func anEndWithoutValuesNeedsNoDemandButComesAfterTheSubscription() {
    let subject = Sut()
    let early = Tracker()
    var isAttaching = false
    early.onSubscription = { _ in
      isAttaching = true
      subject.send(completion: .finished)
      isAttaching = false
    }
    early.onCompletion = { #expect(!isAttaching) }
    subject.subscribe(early)
    let late = Tracker()
    subject.subscribe(late)
    #expect(early.history.take() == [name, .finished])
    #expect(late.history.take() == [name, .finished])
  }

  @Test func cancellingFromWithinAValueTakesEffectAtOnce() {
    let subject = Sut()
    subject.send(1)
    subject.send(2)
    let tracker = Tracker(.unlimited)
    tracker.onValue = { [unowned tracker] _ in tracker.subscription?.cancel() }
    subject.subscribe(tracker)
    subject.send(3)
    subject.send(completion: .finished)
    tracker.subscription?.request(.max(1))
    #expect(tracker.history.take() == [name, .value(1)])
  }

  @Test func sendsToItselfAMillionTimesOnAConstantStack() {
    let subject = ReplaySubject<Int, Never>(bufferSize: 1)
    var last = 0
    let subscription = subject.sink { value in
      last += value == last + 1 ? 1 : 0
      if value < 1_000_000 { subject.send(value + 1) }
    }
    subject.send(1)
    #expect(last == 1_000_000)
    subscription.cancel()
  }

  @Test func asksItsSourcesForEverythingAndCancelsThem() {
    let history = History()
    func source() -> ManualSubscription {
      ManualSubscription(
        onRequest: { history.append(.requested($0)) }, onCancel: { history.append(.cancelled) })
    }
    do {
      let subject = Sut()
      subject.send(subscription: source())
      #expect(history.take() == [.requested(.unlimited)])
    }
    #expect(history.take() == [.cancelled])
    let subject = Sut()
    subject.send(completion: .finished)
    subject.send(subscription: source())
    #expect(history.take() == [.cancelled])
  }

  final class Payload {}

  @Test func keepsNoMoreThanItsSize() {
    let subject = ReplaySubject<Payload, Never>(bufferSize: 2)
    var seen: [() -> Payload?] = []
    func send() {
      let payload = Payload()
      seen.append { [weak payload] in payload }
      subject.send(payload)
    }
    func living() -> [Int] { seen.indices.filter { seen[$0]() != nil } }
    send()
    let subscription = subject.sink { _ in }
    for _ in 1..<10 { send() }
    #expect(living() == [8, 9])
    subscription.cancel()
    for _ in 0..<5 { send() }
    #expect(living() == [13, 14])
    subject.send(completion: .finished)
    #expect(living() == [13, 14])
  }

  enum Ending: CaseIterable { case finish, failure, cancel, cancelWithinValue }

  @Test(arguments: Ending.allCases) func releasesEverything(end: Ending) {
    var released = 0
    weak var weakSubject: Sut?
    var kept: (any Subscription)?
    do {
      let subject = Sut()
      weakSubject = subject
      subject.send(1)
      let tracker = Tracker(.unlimited)
      tracker.onDeinit = { released += 1 }
      if end == .cancelWithinValue {
        tracker.onValue = { [unowned tracker] _ in tracker.subscription?.cancel() }
      }
      subject.subscribe(tracker)
      switch end {
      case .finish: subject.send(completion: .finished)
      case .failure: subject.send(completion: .failure(Oops()))
      case .cancel: tracker.subscription?.cancel()
      case .cancelWithinValue: break
      }
      kept = tracker.subscription
    }
    #expect(released == 1)
    #expect(weakSubject == nil)
    withExtendedLifetime(kept) {}
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      Sut().subscribe(Tracker(Subscribers.Demand.none))
    }
  }

  @Test func stopsTheProgramIfTheSizeIsNegative() async {
    await #expect(processExitsWith: .failure) { _ = Sut(bufferSize: -1) }
  }

  /// Checks that it is called serially and completed once.
  final class Checker: Subscriber, Sendable {
    typealias Input = Int
    typealias Failure = Never
    let demand: Subscribers.Demand
    let calls = Atomic<Int>(0)
    nonisolated(unsafe) var received: [Int] = []  // by one call at a time, which is what is checked
    nonisolated(unsafe) var completions = 0

    init(_ demand: Subscribers.Demand) { self.demand = demand }

    func receive(subscription: any Subscription) { subscription.request(demand) }
    func receive(_ input: Int) -> Subscribers.Demand {
      #expect(calls.add(1, ordering: .relaxed).newValue == 1)
      #expect(completions == 0)
      received.append(input)
      calls.subtract(1, ordering: .relaxed)
      return demand
    }
    func receive(completion: Subscribers.Completion<Never>) { completions += 1 }
  }

  @Test func whileManyThreadsSendAllGetTheSameOrderAndWhoAsksForEverythingMissesNothing() throws {
    let subject = ReplaySubject<Int, Never>(bufferSize: 50)
    let reference = Checker(.unlimited)
    subject.subscribe(reference)
    let checkers = EventLog<Checker>()
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      for number in 0..<500 {
        if thread < 2 {
          subject.send(thread * 1000 + number)
        } else if number % 10 == 0 {
          let checker = Checker(thread == 2 ? .unlimited : .max(1))
          checkers.append(checker)
          subject.subscribe(checker)
        }
      }
    }
    subject.send(completion: .finished)
    #expect(reference.received.count == 1000)
    let places = Dictionary(uniqueKeysWithValues: zip(reference.received, 0...))
    for thread in 0..<2 {
      let numbers = thread * 1000..<thread * 1000 + 500
      #expect(reference.received.filter { numbers.contains($0) } == Array(numbers))
    }
    for checker in checkers.events + [reference] {
      #expect(checker.completions == 1)
      #expect(checker.received.count >= 50)
      if checker.demand == .unlimited {
        #expect(checker.received == Array(reference.received.suffix(checker.received.count)))
      } else {
        // A subscriber that requests one value at a time may fall behind, but gets the last ones, and none twice.
        let path = try checker.received.map { try #require(places[$0]) }
        #expect(zip(path, path.dropFirst()).allSatisfy { $0 < $1 })
        #expect(Array(path.suffix(50)) == Array(950..<1000))
      }
    }
  }

  @Test func requestsAndValuesFromDifferentThreadsLoseNothing() {
    let subject = ReplaySubject<Int, Never>()
    let tracker = TrackingSubscriber<Int, Never>()
    subject.subscribe(tracker)
    let subscription = UncheckedBox(tracker.subscription)
    DispatchQueue.concurrentPerform(iterations: 2) { thread in
      for number in 0..<2000 {
        if thread == 0 { subject.send(number) } else { subscription.value?.request(.max(1)) }
      }
    }
    #expect(tracker.history.take() == [name] + values(0..<2000))
  }

  @Test(arguments: [1, .max]) func withstandsRaces(bufferSize: Int) {
    expectHubWithstandsRaces { RaceHub(Sut(bufferSize: bufferSize)) }
  }
}
