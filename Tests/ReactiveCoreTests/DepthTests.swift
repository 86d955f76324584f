import ReactiveCore
import ReactiveTestSupport
import Testing

/// Long streams run on a constant stack, and their work grows at most linearly with their length.
///
/// Each runs on a thread with a small stack. Work is counted in calls of the test's functions: elements taken from a sequence, requests that arrive
/// upstream, and other functions.
struct DepthTests {
  /// A million in optimised builds. Without optimisation it would take minutes; the stack has little more than a byte for each
  /// of these values, so any growth shows just as well.
  #if DEBUG
    static let many = 100_000
  #else
    static let many = 1_000_000
  #endif

  @Test func theSmallStackIsSmall() async {
    await #expect(processExitsWith: .failure) {
      print(await onSmallStack { descend(1_000_000) })
    }
  }

  // Subjects.

  @Test func aPassthroughSubjectThatFeedsItselfDoesNotNest() async {
    let (count, deepest) = await onSmallStack {
      let subject = PassthroughSubject<Int, Never>()
      var (count, depth, deepest) = (0, 0, 0)
      let cancellable = subject.sink { number in
        depth += 1
        deepest = max(deepest, depth)
        count += 1
        if number < Self.many { subject.send(number + 1) }
        depth -= 1
      }
      subject.send(1)
      cancellable.cancel()
      return (count, deepest)
    }
    #expect(count == Self.many)
    #expect(deepest == 1)
  }

  @Test func aCurrentValueSubjectThatFeedsItselfDoesNotNest() async {
    let (count, deepest) = await onSmallStack {
      let subject = CurrentValueSubject<Int, Never>(1)
      var (count, depth, deepest) = (0, 0, 0)
      let cancellable = subject.sink { number in
        depth += 1
        deepest = max(deepest, depth)
        count += 1
        if number < Self.many { subject.send(number + 1) }
        depth -= 1
      }
      cancellable.cancel()
      return (count, deepest)
    }
    #expect(count == Self.many)
    #expect(deepest == 1)
  }

  // Requests from within.

  @Test func aSequenceWhoseSubscriberRequestsWithinReceiveDoesNotNest() async {
    let work = await onSmallStack {
      let work = Work()
      let subscriber = OneByOneSubscriber(work, mode: .request)
      CountingSequence(work, count: Self.many).publisher.subscribe(subscriber)
      return work.tally
    }
    #expect(work == Tally(taken: Self.many + 1, received: Self.many, completions: 1, deepest: 1))
  }

  @Test(arguments: [OneByOneSubscriber.Mode.request, .answer])
  func aBufferDemandedOneByOneGivesAllItHolds(mode: OneByOneSubscriber.Mode) async {
    let (work, requests) = await onSmallStack {
      let work = Work()
      var requests = 0
      let source = PassthroughSubject<Int, Never>()
      let subscriber = OneByOneSubscriber(work, mode: mode, first: .none)
      source
        .handleEvents(receiveRequest: { _ in requests += 1 })
        .buffer(size: Self.many, prefetch: .byRequest, whenFull: .dropNewest)
        .subscribe(subscriber)
      for number in 0..<Self.many { source.send(number) }
      source.send(completion: .finished)
      subscriber.subscription?.request(.max(1))
      return (work.tally, requests)
    }
    #expect(work == Tally(taken: 0, received: Self.many, completions: 1, deepest: 1))
    #expect(requests == 1)
  }

  @Test(arguments: [1, 16])
  func aBufferThatIsKeptFullAsksForEachValueOnce(size: Int) async {
    let work = await onSmallStack {
      let work = Work()
      CountingSequence(work, count: Self.many).publisher
        .buffer(size: size, prefetch: .keepFull, whenFull: .dropNewest)
        .subscribe(OneByOneSubscriber(work, mode: .request))
      return work.tally
    }
    #expect(work == Tally(taken: Self.many + 1, received: Self.many, completions: 1, deepest: 1))
  }

  // Publishers within publishers.

  @Test(arguments: [Subscribers.Demand.unlimited, .max(1), .max(3)])
  func aFlatMapOfManyIsNotDeeperThanOneOfFew(maxPublishers: Subscribers.Demand) async {
    let (work, made) = await onSmallStack {
      let work = Work()
      var made = 0
      let cancellable = CountingSequence(work, count: Self.many).publisher
        .flatMap(maxPublishers: maxPublishers) { number in
          made += 1
          return Just(number)
        }
        .sink(receiveCompletion: { _ in work.completions += 1 }, receiveValue: { _ in work.received += 1 })
      cancellable.cancel()
      return (work.tally, made)
    }
    #expect(work == Tally(taken: Self.many + 1, received: Self.many, completions: 1, deepest: 0))
    #expect(made == Self.many)
  }

  @Test func aFlatMapDemandedOneByOneDoesNotNest() async {
    let work = await onSmallStack {
      let work = Work()
      CountingSequence(work, count: Self.many).publisher
        .flatMap(maxPublishers: .max(1)) { Just($0) }
        .subscribe(OneByOneSubscriber(work, mode: .request))
      return work.tally
    }
    #expect(work.received == Self.many)
    #expect(work.deepest == 1)
    #expect(work.completions == 1)
  }

  @Test func aSubjectThatFeedsItselfThroughSharedPublishersDoesNotNest() async {
    let (count, deepest) = await onSmallStack {
      let subject = PassthroughSubject<Int, Never>()
      let shared = subject.share()
      var (count, depth, deepest) = (0, 0, 0)
      let idle = shared.sink { _ in }
      let busy = shared.sink { number in
        depth += 1
        deepest = max(deepest, depth)
        count += 1
        if number < Self.many { subject.send(number + 1) }
        depth -= 1
      }
      subject.send(1)
      idle.cancel()
      busy.cancel()
      return (count, deepest)
    }
    #expect(count == Self.many)
    #expect(deepest == 1)
  }

  @Test func receivingOnASchedulerThatRunsAtOnceDoesNotNest() async {
    let work = await onSmallStack {
      let work = Work()
      CountingSequence(work, count: Self.many).publisher
        .receive(on: ImmediateScheduler.shared)
        .subscribe(OneByOneSubscriber(work, mode: .request))
      return work.tally
    }
    #expect(work == Tally(taken: Self.many + 1, received: Self.many, completions: 1, deepest: 1))
  }
  @Test func switchingToTheLatestOfManyDoesNotNest() async {
    let work = await onSmallStack {
      let work = Work()
      let cancellable = CountingSequence(work, count: Self.many).publisher
        .map { Just($0) }
        .switchToLatest()
        .sink(receiveCompletion: { _ in work.completions += 1 }, receiveValue: { _ in work.received += 1 })
      cancellable.cancel()
      return work.tally
    }
    #expect(work == Tally(taken: Self.many + 1, received: Self.many, completions: 1, deepest: 0))
  }

  @Test func retryingManyTimesDoesNotNest() async {
    let (attempts, failures) = await onSmallStack {
      var (attempts, failures) = (0, 0)
      let cancellable = Deferred {
        attempts += 1
        return Fail<Int, Oops>(error: Oops())
      }
      .retry(Self.many)
      .sink(
        receiveCompletion: { if case .failure = $0 { failures += 1 } }, receiveValue: { _ in })
      cancellable.cancel()
      return (attempts, failures)
    }
    #expect(attempts == Self.many + 1)
    #expect(failures == 1)
  }

  // Several upstreams.

  @Test func zippingLongSequencesTakesEachElementOnce() async {
    let (first, second) = await onSmallStack {
      let (first, second) = (Work(), Work())
      let cancellable = CountingSequence(first, count: Self.many).publisher
        .zip(CountingSequence(second, count: Self.many).publisher)
        .sink(receiveCompletion: { _ in first.completions += 1 }, receiveValue: { _ in first.received += 1 })
      cancellable.cancel()
      return (first.tally, second.tally)
    }
    #expect(first.received == Self.many)
    #expect(first.completions == 1)
    #expect(first.taken == Self.many + 1)
    #expect(second.taken <= Self.many + 1)
  }

  @Test func combiningTheLatestOfLongSequencesTakesEachElementOnce() async {
    let (first, second) = await onSmallStack {
      let (first, second) = (Work(), Work())
      let cancellable = CountingSequence(first, count: Self.many).publisher
        .combineLatest(CountingSequence(second, count: Self.many).publisher)
        .sink(receiveCompletion: { _ in first.completions += 1 }, receiveValue: { _ in first.received += 1 })
      cancellable.cancel()
      return (first.tally, second.tally)
    }
    #expect(first.received == Self.many)
    #expect(first.completions == 1)
    #expect(first.taken == Self.many + 1)
    #expect(second.taken == Self.many + 1)
  }

  /// Each link subscribes, and later delivers, within the link that was appended after it, so this alone needs a stack that
  /// grows with the number of publishers.
  @Test func aLongChainOfAppendedPublishersDeliversInOrder() async {
    let links = 10_000
    let (received, isInOrder) = await onSmallStack(512 << 20) {
      var chain = Just(0).eraseToAnyPublisher()
      for number in 1...links { chain = chain.append(number).eraseToAnyPublisher() }
      var (received, isInOrder) = (0, true)
      let cancellable = chain.sink { number in
        isInOrder = isInOrder && number == received
        received += 1
      }
      cancellable.cancel()
      return (received, isInOrder)
    }
    #expect(received == links + 1)
    #expect(isInOrder)
  }
}

/// Calls itself this many times.
private func descend(_ levels: Int) -> Int {
  levels == 0 ? 0 : 1 + descend(levels - 1)
}

/// The calls of a pipeline.
final class Work {
  var taken = 0
  var received = 0
  var completions = 0
  var depth = 0
  var deepest = 0

  var tally: Tally {
    Tally(taken: taken, received: received, completions: completions, deepest: deepest)
  }
}

struct Tally: Equatable, Sendable {
  var taken: Int
  var received: Int
  var completions: Int
  var deepest: Int
}

/// Counts how often an element is requested.
private struct CountingSequence: Sequence, IteratorProtocol {
  let work: Work
  let count: Int
  var position = 0

  init(_ work: Work, count: Int) {
    self.work = work
    self.count = count
  }

  mutating func next() -> Int? {
    work.taken += 1
    guard position < count else { return nil }
    position += 1
    return position
  }
}

/// Requests one value, and one more with each value. Records its depth of calls.
final class OneByOneSubscriber: Subscriber {
  enum Mode: Sendable {
    /// Requests while it gets a value.
    case request
    /// Requests with its return value.
    case answer
  }

  private let work: Work
  private let mode: Mode
  private let first: Subscribers.Demand
  private(set) var subscription: (any Subscription)?

  init(_ work: Work, mode: Mode, first: Subscribers.Demand = .max(1)) {
    self.work = work
    self.mode = mode
    self.first = first
  }

  func receive(subscription: any Subscription) {
    self.subscription = subscription
    if first != .none { subscription.request(first) }
  }

  func receive(_ input: Int) -> Subscribers.Demand {
    work.depth += 1
    defer { work.depth -= 1 }
    work.deepest = max(work.deepest, work.depth)
    work.received += 1
    guard mode == .request else { return .max(1) }
    subscription?.request(.max(1))
    return .none
  }

  func receive(completion: Subscribers.Completion<Never>) {
    work.completions += 1
    subscription = nil
  }
}
