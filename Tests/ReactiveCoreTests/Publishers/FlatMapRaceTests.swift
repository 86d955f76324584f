import Dispatch
import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

/// `flatMap` used by several threads.
@Suite struct FlatMapRaceTests {
  /// Checks that its calls arrive one at a time, and that none follows the end.
  final class SerialChecker: Subscriber, Sendable {
    typealias Input = Int
    typealias Failure = Oops
    let demand: Subscribers.Demand
    let isBusy = Atomic<Bool>(false)
    let values = Atomic<Int>(0)
    let completions = Atomic<Int>(0)
    let violations = Atomic<Int>(0)

    init(_ demand: Subscribers.Demand) { self.demand = demand }

    func alone(_ body: () -> Void) {
      let wasBusy = isBusy.exchange(true, ordering: .acquiring)
      if wasBusy || completions.load(ordering: .relaxed) > 0 { violations.add(1, ordering: .relaxed) }
      body()
      isBusy.store(false, ordering: .releasing)
    }

    func receive(subscription: any Subscription) { subscription.request(demand) }
    func receive(_ input: Int) -> Subscribers.Demand {
      alone { values.add(1, ordering: .relaxed) }
      return demand
    }
    func receive(completion: Subscribers.Completion<Oops>) {
      alone { completions.add(1, ordering: .relaxed) }
    }
  }

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1)])
  func theEndComesOnceAndLastWhileOthersDeliver(demand: Subscribers.Demand) {
    for round in 0..<300 {
      let subjects = UncheckedBox((0..<3).map { _ in PassthroughSubject<Int, Oops>() })
      let outer = UncheckedBox(PassthroughSubject<Int, Oops>())
      let checker = SerialChecker(demand)
      outer.value.flatMap { subjects.value[$0] }.subscribe(checker)
      for number in 0..<3 { outer.value.send(number) }
      let senders = Atomic<Int>(2)
      DispatchQueue.concurrentPerform(iterations: 3) { thread in
        if thread < 2 {
          for number in 0..<200 { subjects.value[thread].send(number) }
          senders.subtract(1, ordering: .relaxed)
        } else {
          // Values without demand are never delivered, so there may be fewer.
          while checker.values.load(ordering: .relaxed) < round, senders.load(ordering: .relaxed) > 0 {}
          if round % 2 == 0 {
            subjects.value[2].send(completion: .failure(Oops()))
          } else {
            outer.value.send(completion: .failure(Oops()))
          }
        }
      }
      #expect(checker.completions.load(ordering: .relaxed) == 1)
      #expect(checker.violations.load(ordering: .relaxed) == 0)
    }
  }

  @Test func childrenMayEndOnOneThreadWhileTheyAreMadeOnAnother() {
    for _ in 0..<20 {
      let made = EventLog<UncheckedBox<PassthroughSubject<Int, Oops>>>()
      let outer = UncheckedBox(PassthroughSubject<Int, Oops>())
      let checker = SerialChecker(.unlimited)
      outer.value.flatMap { _ in
        let subject = PassthroughSubject<Int, Oops>()
        made.append(UncheckedBox(subject))
        return subject
      }.subscribe(checker)
      let count = 300
      let sent = Atomic<Int>(0)
      DispatchQueue.concurrentPerform(iterations: 3) { thread in
        if thread == 0 {
          for number in 0..<count { outer.value.send(number) }
          outer.value.send(completion: .finished)
        } else {
          for index in stride(from: thread - 1, to: count, by: 2) {
            while made.events.count <= index {}
            let subject = made.events[index].value
            subject.send(index)
            subject.send(completion: .finished)
            sent.add(1, ordering: .relaxed)
          }
        }
      }
      #expect(sent.load(ordering: .relaxed) == count)
      #expect(checker.completions.load(ordering: .relaxed) == 1)
      #expect(checker.violations.load(ordering: .relaxed) == 0)
    }
  }

  @Test func cancellingOnAnotherThreadStopsAChildWithoutEnd() {
    for round in 0..<300 {
      let isCancelled = Atomic<Bool>(false)
      let extra = Atomic<Int>(0)
      let numbers = AnySequence {
        AnyIterator {
          // After the cancellation, a child that still runs has a thousand more values.
          let isLate = isCancelled.load(ordering: .acquiring)
          let count = isLate ? extra.add(1, ordering: .relaxed).newValue : 0
          return count < 1_000 ? 1 : nil
        }
      }
      let outer = UncheckedBox(PassthroughSubject<Int, Never>())
      // The box contains an object that may be cancelled from any thread.
      let subscription = UncheckedBox(outer.value.flatMap { _ in numbers.publisher }.sink { _ in })
      DispatchQueue.concurrentPerform(iterations: 2) { thread in
        if thread == 0 {
          outer.value.send(0)
        } else {
          for _ in 0..<round * 10 where isCancelled.load(ordering: .relaxed) {}
          subscription.value.cancel()
          isCancelled.store(true, ordering: .releasing)
        }
      }
      // One value is being delivered, and the sequence has made the next.
      #expect(extra.load(ordering: .relaxed) < 4)
    }
  }
}
