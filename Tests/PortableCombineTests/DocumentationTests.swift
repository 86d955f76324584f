import Foundation
import PortableCombine
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

// The code of the documentation, which a test compares with the pages.

/// Counts down to 1, as far as it is asked to, then finishes.
struct Countdown: Publisher {
  typealias Output = Int
  typealias Failure = Never

  let start: Int

  func receive<S: Subscriber>(subscriber: S) where S.Input == Int, S.Failure == Never {
    let subscription = CountdownSubscription(from: start, to: subscriber)
    subscriber.receive(subscription: subscription)
    subscription.run()
  }
}

final class CountdownSubscription<S: Subscriber>: Subscription where S.Input == Int {
  private let lock = NSLock()
  // Guarded by the lock.
  private var subscriber: S?
  private var next: Int
  private var demand = Subscribers.Demand.none
  private var isRunning = false

  init(from start: Int, to subscriber: S) {
    next = start
    self.subscriber = subscriber
  }

  func request(_ more: Subscribers.Demand) {
    precondition(more > .none)
    lock.withLock { demand += more }
    run()
  }

  func cancel() {
    let subscriber = lock.withLock {
      defer { self.subscriber = nil }
      return self.subscriber
    }
    // The subscriber may be freed here, after the lock.
    withExtendedLifetime(subscriber) {}
  }

  /// Delivers what is asked for, unless someone does already.
  func run() {
    let isMine = lock.withLock {
      defer { isRunning = true }
      return !isRunning
    }
    guard isMine else { return }
    while let (subscriber, number) = step() {
      guard let number else { return subscriber.receive(completion: .finished) }
      let more = subscriber.receive(number)
      lock.withLock { demand += more }
    }
  }

  /// Whom to give which number, nil for the end; nothing if it is time to stop.
  private func step() -> (S, Int?)? {
    lock.withLock {
      guard let subscriber, next == 0 || demand > .none else {
        isRunning = false
        return nil
      }
      if next == 0 {
        self.subscriber = nil
        return (subscriber, nil)
      }
      demand -= 1
      defer { next -= 1 }
      return (subscriber, next)
    }
  }
}

/// Takes values in batches and doesn't ask for the next batch before it has handled one.
final class Batches<Input, Failure: Error>: Subscriber, Cancellable {
  private let size: Int
  private let handle: ([Input]) -> Void
  private var batch: [Input] = []
  private let lock = NSLock()
  private var subscription: (any Subscription)?  // guarded by the lock

  init(of size: Int, handle: @escaping ([Input]) -> Void) {
    self.size = size
    self.handle = handle
  }

  func receive(subscription: any Subscription) {
    let isFirst = lock.withLock {
      guard self.subscription == nil else { return false }
      self.subscription = subscription
      return true
    }
    if isFirst { subscription.request(.max(size)) } else { subscription.cancel() }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    batch.append(input)
    guard batch.count == size else { return .none }
    handle(batch)
    batch = []
    return .max(size)
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    if !batch.isEmpty { handle(batch) }
    batch = []
    _ = take()
  }

  func cancel() {
    take()?.cancel()
  }

  private func take() -> (any Subscription)? {
    lock.withLock {
      defer { subscription = nil }
      return subscription
    }
  }
}

extension Publisher {
  /// Passes on each value together with the one before.
  func pairs() -> some Publisher<(Output, Output), Failure> {
    scan((nil, nil)) { (pair: (Output?, Output?), value) in (pair.1, value) }
      .compactMap { pair in pair.0.flatMap { first in pair.1.map { (first, $0) } } }
  }
}

/// Passes on the first value, the third, and so on.
struct EveryOther<Upstream: Publisher>: Publisher {
  typealias Output = Upstream.Output
  typealias Failure = Upstream.Failure

  let upstream: Upstream

  func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    upstream.subscribe(EveryOtherSubscriber(downstream: subscriber))
  }
}

final class EveryOtherSubscriber<Downstream: Subscriber>: Subscriber {
  typealias Input = Downstream.Input
  typealias Failure = Downstream.Failure

  private let downstream: Downstream
  private var isDropping = true

  init(downstream: Downstream) {
    self.downstream = downstream
  }

  func receive(subscription: any Subscription) {
    downstream.receive(subscription: subscription)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    isDropping.toggle()
    return isDropping ? .max(1) : downstream.receive(input)
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    downstream.receive(completion: completion)
  }
}

func feedback() -> [Int] {
  let a = PassthroughSubject<Int, Never>()
  let b = CurrentValueSubject<Int, Never>(0)
  var received: [Int] = []
  let subscription = a.combineLatest(b).sink { value, _ in
    received.append(value)
    if value < 3 { a.send(value + 1) }
  }
  a.send(1)
  subscription.cancel()
  return received  // [1, 2, 3]; Combine delivers [1]
}

func order() -> [String] {
  let subject = PassthroughSubject<Int, Never>()
  var lines: [String] = []
  let first = subject.sink { value in
    lines.append("first \(value)")
    if value == 1 { subject.send(2) }
  }
  let second = subject.sink { lines.append("second \($0)") }
  subject.send(1)
  first.cancel()
  second.cancel()
  return lines  // first 1, second 1, first 2, second 2; Combine: first 1, first 2, second 2, second 1
}

final class Waiting: Subscriber {
  typealias Input = Int
  typealias Failure = Never
  var events: [String] = []

  func receive(subscription: any Subscription) {}  // asks for nothing

  func receive(_ input: Int) -> Subscribers.Demand {
    events.append("value \(input)")
    return .none
  }

  func receive(completion: Subscribers.Completion<Never>) {
    events.append("finished")
  }
}

func withoutDemand() -> [[String]] {
  let (search, count) = (Waiting(), Waiting())
  [1, 2].publisher.eraseToAnyPublisher().first { $0 > 5 }.subscribe(search)
  Empty<Int, Never>().eraseToAnyPublisher().count().subscribe(count)
  return [search.events, count.events]  // [["finished"], []]; Combine: [[], ["value 0", "finished"]]
}

func empty() -> (eager: [Int], general: [Int]) {
  var (eager, general): ([Int], [Int]) = ([], [])
  let none = Int?.none.publisher
  let subscriptions = [
    none.count().sink { eager.append($0) },
    none.eraseToAnyPublisher().count().sink { general.append($0) },
  ]
  withExtendedLifetime(subscriptions) {}
  return (eager, general)  // ([], [0])
}

@Suite struct DocumentationTests {
  /// What the examples print.
  final class Output {
    var lines: [String] = []
  }

  @Test func theLifeOfASubscription() {
    let output = Output()
    func print(_ number: Int) { output.lines.append("\(number)") }
    let subject = PassthroughSubject<Int, Never>()
    let cancellable = subject.filter { $0 > 1 }.sink { print($0) }
    subject.send(2)
    cancellable.cancel()
    subject.send(3)
    #expect(output.lines == ["2"])
  }

  @Test func sharing() {
    let output = Output()
    func print(_ number: Int) { output.lines.append("\(number)") }
    let source = [1, 2, 3].publisher.multicast(subject: PassthroughSubject())
    let sum = source.reduce(0, +).sink { print($0) }
    let count = source.count().sink { print($0) }
    let connection = source.connect()
    #expect(output.lines == ["6", "3"])
    withExtendedLifetime((sum, count, connection)) {}
  }

  @Test func retryingWhatIsEager() {
    var attempts = 0
    let request = Deferred {
      Future<Int, URLError> { promise in
        attempts += 1
        promise(attempts < 3 ? .failure(URLError(.timedOut)) : .success(attempts))
      }
    }
    var results: [Subscribers.Completion<URLError>] = []
    for _ in 0..<3 {
      _ = request.sink(receiveCompletion: { results.append($0) }, receiveValue: { _ in })
    }
    #expect(attempts == 3)
    #expect(results == [.failure(URLError(.timedOut)), .failure(URLError(.timedOut)), .finished])
  }

  @Test func aCountdownDeliversWhatIsAskedFor() {
    var received: [Int] = []
    var isFinished = false
    var subscription: (any Subscription)?
    Countdown(start: 3).subscribe(
      AnySubscriber(
        receiveSubscription: { subscription = $0 },
        receiveValue: {
          received.append($0)
          subscription?.request(.max(1))
          return .none
        },
        receiveCompletion: { _ in isFinished = true }))
    #expect(received == [])
    subscription?.request(.max(1))
    #expect(received == [3, 2, 1])
    #expect(isFinished)
  }

  @Test func aCountdownFromNothingFinishesAtOnce() {
    var isFinished = false
    Countdown(start: 0).subscribe(AnySubscriber(receiveCompletion: { _ in isFinished = true }))
    #expect(isFinished)
  }

  @Test func aCountdownStopsWhenItIsCancelled() {
    var received: [Int] = []
    var subscription: (any Subscription)?
    Countdown(start: 1_000_000).subscribe(
      AnySubscriber(
        receiveSubscription: { subscription = $0 },
        receiveValue: {
          received.append($0)
          if received.count == 2 { subscription?.cancel() }
          return .max(1)
        },
        receiveCompletion: { _ in Issue.record("completed") }))
    subscription?.request(.max(1))
    #expect(received == [1_000_000, 999_999])
  }

  @Test func batchesAskForMoreWhenTheyAreHandled() {
    var demands: [Subscribers.Demand] = []
    var batches: [[Int]] = []
    let subscriber = Batches<Int, Never>(of: 2) { batches.append($0) }
    (1...5).publisher.eraseToAnyPublisher().handleEvents(receiveRequest: { demands.append($0) })
      .subscribe(subscriber)
    #expect(batches == [[1, 2], [3, 4], [5]])
    #expect(demands == [.max(2), .max(2), .max(2)])
    subscriber.cancel()
  }

  @Test func pairsAndEveryOther() {
    var pairs: [[Int]] = []
    let numbers = (1...4).publisher.eraseToAnyPublisher()
    _ = numbers.pairs().sink { pairs.append([$0.0, $0.1]) }
    #expect(pairs == [[1, 2], [2, 3], [3, 4]])
    var values: [Int] = []
    EveryOther(upstream: Countdown(start: 6)).subscribe(
      AnySubscriber(
        receiveSubscription: { $0.request(.max(3)) },
        receiveValue: {
          values.append($0)
          return .none
        }))
    #expect(values == [6, 4, 2])
  }

  @Test func whatIsOtherwiseThanInApplesCombine() {
    #expect(feedback() == [1, 2, 3])
    #expect(order() == ["first 1", "second 1", "first 2", "second 2"])
    #expect(withoutDemand() == [["finished"], []])
    #expect(empty().eager == [])
    #expect(empty().general == [0])
  }

  @Test func thePagesShowTheCodeThatIsTestedHere() throws {
    let file = URL(filePath: #filePath)
    let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let catalog = root.appending(path: "Sources/PortableCombine/PortableCombine.docc")
    func lines(_ text: String) -> [String] {
      text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter {
        !$0.isEmpty && !$0.hasPrefix("import ")
      }
    }
    let tested = "\n" + lines(try String(contentsOf: file, encoding: .utf8)).joined(separator: "\n")
    var count = 0
    for page in try FileManager.default.contentsOfDirectory(atPath: catalog.path) where page.hasSuffix(".md")
    {
      let text = try String(contentsOf: catalog.appending(path: page), encoding: .utf8)
      for block in text.components(separatedBy: "```swift\n").dropFirst() {
        let code = lines(block.components(separatedBy: "```")[0]).joined(separator: "\n")
        #expect(tested.contains("\n" + code + "\n"), "\(page)")
        count += 1
      }
    }
    #expect(count == 13)
  }
}
