import Dispatch
import Foundation
import ReactiveCore
import Synchronization
import Testing

/// A hub to which many threads send and many subscribers listen.
package struct RaceHub: @unchecked Sendable {
  // The objects that the functions use may be called from any thread, which is what is tested.
  package let send: (Int) -> Void
  package let complete: (Subscribers.Completion<Oops>) -> Void
  package let publisher: AnyPublisher<Int, Oops>

  package init<Source: Subject, Output: Publisher>(_ subject: Source, _ publisher: Output)
  where Source.Output == Int, Source.Failure == Oops, Output.Output == Int, Output.Failure == Oops {
    send = { subject.send($0) }
    complete = { subject.send(completion: $0) }
    self.publisher = publisher.eraseToAnyPublisher()
  }

  package init<Source: Subject>(_ subject: Source) where Source.Output == Int, Source.Failure == Oops {
    self.init(subject, subject)
  }

  /// The number that stands for a thread's value.
  static func value(_ number: Int, of thread: Int) -> Int { thread * 100_000 + number }
}

/// Checks the guarantees for every subscriber: one call at a time, no values beyond its demand, and the values of one thread in order. One completion
/// comes at the end. No call is made on a thread on which it has cancelled.
package final class StrictSubscriber: Subscriber, Sendable {
  package typealias Input = Int
  package typealias Failure = Oops

  private let demandPerValue: Subscribers.Demand
  private let initialDemand: Subscribers.Demand?
  // Relaxed, so that a thread sanitizer still sees deliveries that nothing puts in order.
  private let isBusy = Atomic<Bool>(false)
  private let violationCount = Atomic<Int>(0)
  private let asked = Atomic<UInt>(0)
  private let canceller = Atomic<UInt>(0)
  private let box = Mutex<UncheckedBox<any Subscription>?>(nil)

  // Used by one call at a time, which is what is checked, then by the test.
  nonisolated(unsafe) private(set) package var values: [Int] = []
  nonisolated(unsafe) private(set) package var completions = 0
  nonisolated(unsafe) private var lastOfThread: [Int: Int] = [:]

  package init(_ initialDemand: Subscribers.Demand?, perValue: Subscribers.Demand = .none) {
    self.initialDemand = initialDemand
    demandPerValue = perValue
  }

  package var violations: Int { violationCount.load(ordering: .relaxed) }

  package func request(_ demand: Subscribers.Demand) {
    note(demand)
    box.withLock { $0 }?.value.request(demand)
  }

  package func cancel() {
    box.withLock { $0 }?.value.cancel()
    canceller.store(Self.thisThread, ordering: .relaxed)
  }

  /// Releases the subscription.
  package func forget() {
    box.withLock { $0 = nil }
  }

  private static var thisThread: UInt { UInt(pthread_self()) }

  private func note(_ demand: Subscribers.Demand) {
    asked.add(UInt(demand.max ?? 1_000_000_000), ordering: .relaxed)
  }

  private func expect(_ condition: Bool) {
    if !condition { violationCount.add(1, ordering: .relaxed) }
  }

  private func alone(_ body: () -> Void) {
    expect(!isBusy.exchange(true, ordering: .relaxed))
    expect(canceller.load(ordering: .relaxed) != Self.thisThread)
    body()
    isBusy.store(false, ordering: .relaxed)
  }

  package func receive(subscription: any Subscription) {
    box.withLock { $0 = UncheckedBox(subscription) }
    if let initialDemand { request(initialDemand) }
  }

  package func receive(_ input: Int) -> Subscribers.Demand {
    alone {
      expect(completions == 0)
      values.append(input)
      expect(UInt(values.count) <= asked.load(ordering: .relaxed))
      expect(lastOfThread[input / 100_000, default: -2] < input)
      lastOfThread[input / 100_000] = input
      note(demandPerValue)
    }
    return demandPerValue
  }

  package func receive(completion: Subscribers.Completion<Oops>) {
    alone {
      expect(completions == 0)
      completions += 1
    }
  }
}

/// Holds something until a thread takes it out.
private final class Takeable<Value>: Sendable {
  private let box: Mutex<UncheckedBox<Value>?>

  init(_ value: Value) {
    box = Mutex(UncheckedBox(value))
  }

  var value: Value? { box.withLock { $0 }?.value }

  func take() -> Value? {
    box.withLock { box in box.take() }?.value
  }
}

/// Checks what every subject, and every publisher that shares one subscription, does when its functions are called on several
/// threads at a time.
///
/// - Parameter makeHub: Makes a new one, whose subscribers get all that is sent after they asked for everything.
package func expectHubWithstandsRaces(
  rounds: Int = 30, sourceLocation: SourceLocation = #_sourceLocation, _ makeHub: () -> RaceHub
) {
  func check(_ title: Comment, _ condition: Bool) {
    #expect(condition, title, sourceLocation: sourceLocation)
  }

  /// Does things at the same time, each on a thread.
  func race(_ bodies: (@Sendable () -> Void)...) {
    let bodies = bodies
    let waiting = Atomic<Int>(bodies.count)
    DispatchQueue.concurrentPerform(iterations: bodies.count) { thread in
      waiting.subtract(1, ordering: .relaxed)
      var turns = 0
      while waiting.load(ordering: .relaxed) > 0, turns < 10_000 { turns += 1 }
      bodies[thread]()
    }
  }

  func sending(_ hub: RaceHub, _ thread: Int, count: Int = 200) -> @Sendable () -> Void {
    { for number in 0..<count { hub.send(RaceHub.value(number, of: thread)) } }
  }

  for round in 0..<rounds {
    do {
      let hub = makeHub()
      let all = [StrictSubscriber(.unlimited), StrictSubscriber(.unlimited)]
      let counting = StrictSubscriber(.max(1), perValue: .max(1))
      for subscriber in all + [counting] { hub.publisher.subscribe(subscriber) }
      race(sending(hub, 1), sending(hub, 2), sending(hub, 3))
      check("send/send: nothing is lost", all[0].values.filter { $0 >= 100_000 }.count == 600)
      check("send/send: all see one order", all[0].values == all[1].values)
      check("send/send: the last value reaches everyone", counting.values.last == all[0].values.last)
      check("send/send", (all + [counting]).allSatisfy { $0.violations == 0 })
    }
    do {
      let hub = makeHub()
      let reference = StrictSubscriber(.unlimited)
      let leaving = [StrictSubscriber(.unlimited), StrictSubscriber(.max(5), perValue: .max(1))]
      for subscriber in [reference] + leaving { hub.publisher.subscribe(subscriber) }
      race(
        sending(hub, 1), sending(hub, 2),
        {
          for subscriber in leaving { subscriber.cancel() }
        },
        { leaving[0].cancel() })
      let counts = leaving.map(\.values.count)
      hub.send(RaceHub.value(1, of: 9))
      hub.complete(.finished)
      check("send/cancel: silent afterwards", leaving.map(\.values.count) == counts)
      check("send/cancel: no completion", leaving.allSatisfy { $0.completions == 0 })
      check("send/cancel: others miss nothing", reference.values.filter { $0 >= 100_000 }.count == 401)
      check("send/cancel", (leaving + [reference]).allSatisfy { $0.violations == 0 })
    }
    do {
      let hub = makeHub()
      let subscriber = StrictSubscriber(nil)
      hub.publisher.subscribe(subscriber)
      race(
        sending(hub, 1), sending(hub, 2), { for _ in 0..<100 { subscriber.request(.max(1)) } },
        { for _ in 0..<100 { subscriber.request(.max(2)) } })
      subscriber.request(.unlimited)
      hub.send(RaceHub.value(1, of: 9))
      check("send/request: goes on", subscriber.values.last == RaceHub.value(1, of: 9))
      check("send/request", subscriber.violations == 0)
    }
    do {
      let hub = makeHub()
      let reference = StrictSubscriber(.unlimited)
      hub.publisher.subscribe(reference)
      let late = (0..<20).map { _ in StrictSubscriber(.unlimited) }
      race(
        sending(hub, 1), sending(hub, 2), { for subscriber in late { hub.publisher.subscribe(subscriber) } })
      hub.send(RaceHub.value(1, of: 9))
      for subscriber in late {
        let count = subscriber.values.count
        check(
          "subscribe/send: a gapless end",
          count > 0 && subscriber.values == Array(reference.values.suffix(count)))
      }
      check("subscribe/send", (late + [reference]).allSatisfy { $0.violations == 0 })
    }
    do {
      let hub = makeHub()
      let early = (0..<5).map { _ in StrictSubscriber(.unlimited) }
      let late = (0..<20).map { _ in StrictSubscriber(.unlimited) }
      let leaving = StrictSubscriber(.unlimited)
      for subscriber in early + [leaving] { hub.publisher.subscribe(subscriber) }
      race(
        sending(hub, 1), { for subscriber in late { hub.publisher.subscribe(subscriber) } },
        { hub.complete(round % 2 == 0 ? .finished : .failure(Oops())) },
        { hub.complete(.finished) }, { leaving.cancel() })
      hub.send(RaceHub.value(1, of: 9))
      check("complete/subscribe: once", (early + late).allSatisfy { $0.completions == 1 })
      check("complete/cancel: at most once", leaving.completions <= 1)
      check("complete/send: all see the same", early.allSatisfy { $0.values == early[0].values })
      check("complete", (early + late + [leaving]).allSatisfy { $0.violations == 0 })
    }
    do {
      weak var released: StrictSubscriber?
      do {
        let subscriber = StrictSubscriber(.unlimited)
        released = subscriber
        let hub = Takeable(makeHub())
        hub.value?.publisher.subscribe(subscriber)
        race(
          { subscriber.cancel() },
          { hub.take()?.send(RaceHub.value(1, of: 1)) })
        check("cancel/deinit", subscriber.violations == 0)
        subscriber.forget()
      }
      check("cancel/deinit: everything is released", released == nil)
    }
  }
}
