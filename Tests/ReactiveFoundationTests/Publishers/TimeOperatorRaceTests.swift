import Dispatch
import ReactiveCore
import ReactiveFoundation
import ReactiveTestSupport
import Synchronization
import Testing

/// The operators that deliver on a scheduler, on a concurrent queue, while values, requests, timers and cancellation arrive from several threads.
@Suite struct TimeOperatorRaceTests {
  /// Checks that calls arrive one at a time, in order and within the demand, and that none follows the completion.
  final class Judge<Input>: Subscriber, @unchecked Sendable {
    // The lock guards all fields except those that only the delivering thread uses, which is tested here.
    struct State {
      var requested = 0
      var last = -1
      var received = 0
      var isCompleted = false
      var faults: [String] = []
    }

    private let numbers: @Sendable (Input) -> [Int]
    private let perValue: Int
    private let isInside = Atomic(false)
    private let state = Mutex(State())
    private let subscription = Mutex<UncheckedBox<any Subscription>?>(nil)
    let ended = DispatchSemaphore(value: 0)

    init(perValue: Int, numbers: @escaping @Sendable (Input) -> [Int]) {
      self.perValue = perValue
      self.numbers = numbers
    }

    var result: State { state.withLock { $0 } }

    private func alone(_ body: () -> Void) {
      if isInside.exchange(true, ordering: .acquiringAndReleasing) {
        state.withLock { $0.faults.append("deliveries overlap") }
      }
      body()
      // Some deliveries take longer, so that other calls can come in between.
      if state.withLock({ $0.received.isMultiple(of: 8) }) {
        _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .microseconds(50))
      }
      isInside.store(false, ordering: .releasing)
    }

    func receive(subscription: any Subscription) {
      let box = UncheckedBox(subscription)
      alone { self.subscription.withLock { $0 = box } }
    }

    func receive(_ input: Input) -> Subscribers.Demand {
      alone {
        let numbers = numbers(input)
        state.withLock {
          $0.received += 1
          if $0.received > $0.requested { $0.faults.append("more than was asked for") }
          if $0.isCompleted { $0.faults.append("a value after the completion") }
          for number in numbers {
            if number <= $0.last { $0.faults.append("\(number) after \($0.last)") }
            $0.last = number
          }
          $0.requested += perValue
        }
      }
      return .max(perValue)
    }

    func receive(completion: Subscribers.Completion<Never>) {
      alone {
        state.withLock {
          if $0.isCompleted { $0.faults.append("a second completion") }
          $0.isCompleted = true
        }
      }
      ended.signal()
    }

    func request(_ count: Int) {
      guard let subscription = subscription.withLock({ $0 }) else { return }
      state.withLock { $0.requested += count }
      subscription.value.request(.max(count))
    }

    func cancel() {
      subscription.withLock { $0 }?.value.cancel()
    }
  }

  typealias Source = PassthroughSubject<Int, Never>

  static let queue = DispatchQueue(label: "race", attributes: .concurrent)

  /// Sends from one thread and requests from another. Ends by completion, or by cancelling in between in every other round.
  func race<Operator: Publisher>(
    rounds: Int = 40, values: Int = 300, perValue: Int = 0,
    losesNothing: Bool = false, _ makeOperator: (Source) -> Operator,
    numbers: @escaping @Sendable (Operator.Output) -> [Int], sourceLocation: SourceLocation = #_sourceLocation
  ) where Operator.Failure == Never {
    for round in 0..<rounds {
      let subject = UncheckedBox(Source())
      let judge = Judge<Operator.Output>(perValue: perValue, numbers: numbers)
      makeOperator(subject.value).subscribe(judge)
      // Some operators deliver the subscription on the queue, too.
      Self.queue.sync(flags: .barrier) {}
      judge.request(values)
      let isCancelled = round.isMultiple(of: 2)
      DispatchQueue.concurrentPerform(iterations: 3) { thread in
        switch thread {
        case 0:
          for value in 0..<values { subject.value.send(value) }
          subject.value.send(completion: .finished)
        case 1:
          for _ in 0..<values { judge.request(1) }
        default:
          if isCancelled {
            for _ in 0..<(round * 20) { judge.request(1) }
            judge.cancel()
          }
        }
      }
      if !isCancelled {
        #expect(judge.ended.wait(timeout: .now() + 60) == .success, sourceLocation: sourceLocation)
        if losesNothing {
          #expect(judge.result.last == values - 1, sourceLocation: sourceLocation)
        }
      }
      Self.queue.sync(flags: .barrier) {}
      #expect(judge.result.faults == [], "round \(round)", sourceLocation: sourceLocation)
    }
  }

  @Test(arguments: [0, 1])
  func debounce(perValue: Int) {
    race(perValue: perValue) {
      $0.debounce(for: .nanoseconds(100), scheduler: Self.queue)
    } numbers: {
      [$0]
    }
  }

  @Test(arguments: [true, false])
  func throttle(latest: Bool) {
    race {
      $0.throttle(for: .microseconds(1), scheduler: Self.queue, latest: latest)
    } numbers: {
      [$0]
    }
  }

  @Test func delay() {
    race(losesNothing: true) {
      $0.delay(for: .microseconds(10), scheduler: Self.queue)
    } numbers: {
      [$0]
    }
  }

  @Test func timeoutThatIsNotReached() {
    race(losesNothing: true) {
      $0.timeout(3_600, scheduler: Self.queue)
    } numbers: {
      [$0]
    }
  }

  @Test func timeoutThatIsReached() {
    race {
      $0.timeout(.microseconds(5), scheduler: Self.queue)
    } numbers: {
      [$0]
    }
  }

  @Test func collectByTime() {
    race(losesNothing: true) {
      $0.collect(.byTime(Self.queue, .microseconds(20)))
    } numbers: {
      $0
    }
  }

  @Test func collectByTimeOrCount() {
    race(losesNothing: true) {
      $0.collect(.byTimeOrCount(Self.queue, .microseconds(20), 3))
    } numbers: {
      $0
    }
  }

  @Test func nothingIsDeliveredOnTheThreadThatHasCancelled() {
    for _ in 0..<200 {
      let subject = Source()
      let cancelled = Mutex(false)
      let faults = Mutex(0)
      let serial = DispatchQueue(label: "serial")
      let subscription = UncheckedBox(
        subject.delay(for: .microseconds(1), scheduler: serial).sink { _ in
          if cancelled.withLock({ $0 }) { faults.withLock { $0 += 1 } }
        })
      serial.sync {}
      for value in 0..<10 { subject.send(value) }
      serial.sync {
        subscription.value.cancel()
        cancelled.withLock { $0 = true }
      }
      serial.sync {}
      #expect(faults.withLock { $0 } == 0)
    }
  }
}
