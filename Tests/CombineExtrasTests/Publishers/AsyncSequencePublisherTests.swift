import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Synchronization
import Testing

/// Counts up to a number, then ends or throws; records each call.
struct Counting: AsyncSequence, Sendable {
  typealias Element = Int
  typealias Failure = Oops

  var limit = Int.max
  var error: Oops?
  /// The number before which to wait until the task is cancelled.
  var blocksAt: Int?
  let log = EventLog<String>()

  func makeAsyncIterator() -> Iterator {
    log.append("iterator")
    return Iterator(counting: self, token: Token(log: log))
  }

  /// Reports when the iterator is freed.
  final class Token: Sendable {
    let log: EventLog<String>
    init(log: EventLog<String>) { self.log = log }
    deinit { log.append("released") }
  }

  struct Iterator: AsyncIteratorProtocol {
    let counting: Counting
    let token: Token
    var last = 0

    mutating func next() async throws(Oops) -> Int? { try await next(isolation: nil) }

    mutating func next(isolation actor: isolated (any Actor)?) async throws(Oops) -> Int? {
      counting.log.append("next")
      last += 1
      if last == counting.blocksAt {
        let log = counting.log
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        await withTaskCancellationHandler {
          for await _ in stream {}
        } onCancel: {
          log.append("cancelled")
          continuation.finish()
        }
      }
      if last <= counting.limit { return last }
      if let error = counting.error { throw error }
      return nil
    }
  }
}

@Suite struct AsyncSequencePublisherTests {
  /// Records its events, in the iteration's task.
  final class Recorder<Failure: Error>: Subscriber, Sendable {
    let log = EventLog<String>()
    let subscriptions = EventLog<UncheckedBox<any Subscription>>()
    let perValue: Subscribers.Demand
    let onValue: @Sendable (Recorder, Int) -> Void

    init(
      perValue: Subscribers.Demand = .none, onValue: @escaping @Sendable (Recorder, Int) -> Void = { _, _ in }
    ) {
      self.perValue = perValue
      self.onValue = onValue
    }

    var subscription: any Subscription { subscriptions.events[0].value }

    func receive(subscription: any Subscription) {
      log.append(String(describing: subscription))
      subscriptions.append(UncheckedBox(subscription))
    }

    func receive(_ input: Int) -> Subscribers.Demand {
      log.append("\(input)")
      onValue(self, input)
      return perValue
    }

    func receive(completion: Subscribers.Completion<Failure>) {
      switch completion {
      case .finished: log.append("finished")
      case .failure(let error): log.append("failed \((error as? Oops)?.number ?? -1)")
      }
    }
  }

  @Test func theExampleDoesWhatItSays() async {
    let printed = EventLog<Int>()
    let (ticks, continuation) = AsyncStream.makeStream(of: Int.self)
    let subscription = ticks.publisher.map { $0 * 2 }.sink { printed.append($0) }
    continuation.yield(21)
    #expect(await printed.wait(count: 1))
    #expect(printed.events == [42])
    subscription.cancel()
  }

  @Test func asksForOneElementPerValueAndNoneAhead() async {
    let sequence = Counting()
    let recorder = Recorder<Oops>()
    sequence.publisher.subscribe(recorder)
    #expect(recorder.log.events == ["AsyncSequence"])
    #expect(sequence.log.events == [])
    recorder.subscription.request(.max(2))
    #expect(await recorder.log.wait(count: 3))
    recorder.subscription.request(.max(1))
    #expect(await recorder.log.wait(count: 4))
    #expect(recorder.log.events == ["AsyncSequence", "1", "2", "3"])
    #expect(sequence.log.events == ["iterator", "next", "next", "next"])
    recorder.subscription.cancel()
    #expect(await sequence.log.wait { $0.last == "released" })
  }

  @Test func goesOnWithTheDemandReturnedOrMadeFromWithin() async {
    let sequence = Counting(limit: 1000)
    let returning = Recorder<Oops>(perValue: .max(1))
    sequence.publisher.subscribe(returning)
    returning.subscription.request(.max(1))
    let requesting = Recorder<Oops> { recorder, _ in recorder.subscription.request(.max(1)) }
    sequence.publisher.subscribe(requesting)
    requesting.subscription.request(.max(1))
    for recorder in [returning, requesting] {
      #expect(await recorder.log.wait { $0.last == "finished" })
      #expect(recorder.log.events == ["AsyncSequence"] + (1...1000).map(String.init) + ["finished"])
    }
  }

  @Test func failsWithTheErrorOfTheSequence() async {
    let recorder = Recorder<Oops>()
    Counting(limit: 1, error: Oops(number: 8)).publisher.subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await recorder.log.wait(count: 3))
    #expect(recorder.log.events == ["AsyncSequence", "1", "failed 8"])
  }

  @Test func theEndIsFoundByAskingForMore() async {
    let sequence = Counting(limit: 1)
    let recorder = Recorder<Oops>()
    sequence.publisher.subscribe(recorder)
    recorder.subscription.request(.max(1))
    #expect(await recorder.log.wait(count: 2))
    recorder.subscription.request(.max(1))
    #expect(await recorder.log.wait(count: 3))
    #expect(recorder.log.events == ["AsyncSequence", "1", "finished"])
    recorder.subscription.request(.max(1))
    recorder.subscription.cancel()
    #expect(await sequence.log.wait { $0.last == "released" })
    #expect(sequence.log.events == ["iterator", "next", "next", "released"])
  }

  @Test func cancellingCancelsTheTaskAndIsSilent() async {
    let sequence = Counting(blocksAt: 2)
    let recorder = Recorder<Oops>()
    sequence.publisher.subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await sequence.log.wait { $0.filter { $0 == "next" }.count == 2 })
    recorder.subscription.cancel()
    #expect(await sequence.log.wait { $0.last == "released" })
    #expect(sequence.log.events == ["iterator", "next", "next", "cancelled", "released"])
    #expect(recorder.log.events == ["AsyncSequence", "1"])
  }

  @Test func cancellingFromWithinAValueTakesEffectAtOnce() async {
    let sequence = Counting()
    let recorder = Recorder<Oops> { recorder, _ in recorder.subscription.cancel() }
    sequence.publisher.subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await sequence.log.wait { $0.last == "released" })
    #expect(recorder.log.events == ["AsyncSequence", "1"])
    #expect(sequence.log.events == ["iterator", "next", "released"])
  }

  @Test func aSubscriptionForgottenBetweenValuesReleasesTheIterator() async {
    let sequence = Counting()
    let log = EventLog<String>()
    sequence.publisher.subscribe(Forgetful(log: log))
    #expect(await log.wait(count: 1))
    #expect(await sequence.log.wait { $0.last == "released" })
    #expect(log.events == ["1"])
  }

  /// Requests one value and doesn't keep its subscription.
  final class Forgetful: Subscriber {
    typealias Input = Int
    typealias Failure = Oops
    let log: EventLog<String>
    init(log: EventLog<String>) { self.log = log }
    func receive(subscription: any Subscription) { subscription.request(.max(1)) }
    func receive(_ input: Int) -> Subscribers.Demand {
      log.append("\(input)")
      return .none
    }
    func receive(completion: Subscribers.Completion<Oops>) {}
  }

  @Test func eachSubscriptionIteratesAnew() async {
    let sequence = Counting(limit: 2)
    for _ in 0..<2 {
      let recorder = Recorder<Oops>()
      sequence.publisher.subscribe(recorder)
      recorder.subscription.request(.unlimited)
      #expect(await recorder.log.wait(count: 4))
      #expect(recorder.log.events == ["AsyncSequence", "1", "2", "finished"])
    }
  }

  @Test func requestsFromManyThreadsAddUp() async {
    let sequence = Counting()
    let recorder = Recorder<Oops>()
    sequence.publisher.subscribe(recorder)
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask { for _ in 0..<250 { recorder.subscription.request(.max(1)) } }
      }
    }
    #expect(await recorder.log.wait(count: 1001))
    #expect(recorder.log.events == ["AsyncSequence"] + (1...1000).map(String.init))
    #expect(sequence.log.events.filter { $0 == "next" }.count == 1000)
    recorder.subscription.cancel()
  }

  @Test func whatHasNoTypedErrorFailsWithAny() async {
    let stream = AsyncThrowingStream<Int, any Error> { continuation in
      continuation.yield(1)
      continuation.finish(throwing: Oops(number: 3))
    }
    let recorder = Recorder<any Error>()
    stream.publisher.subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await recorder.log.wait(count: 3))
    #expect(recorder.log.events == ["AsyncSequence", "1", "failed 3"])
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      let recorder = Recorder<Oops>()
      Counting().publisher.subscribe(recorder)
      recorder.subscription.request(.none)
    }
  }
}
