import Dispatch
import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Testing

@Suite struct DispatchTimerTests {
  /// Records ticks, on the timer's queue.
  final class Recorder: Subscriber, Sendable {
    typealias Input = DispatchTime
    typealias Failure = Never

    enum Event: Equatable { case subscription(String), tick(DispatchTime), finished }

    let log = EventLog<Event>()
    let subscriptions = EventLog<UncheckedBox<any Subscription>>()
    let demand: Subscribers.Demand
    let perValue: Subscribers.Demand

    init(_ demand: Subscribers.Demand, perValue: Subscribers.Demand = .none) {
      self.demand = demand
      self.perValue = perValue
    }

    var subscription: any Subscription { subscriptions.events[0].value }
    var ticks: Int { log.events.count { if case .tick = $0 { true } else { false } } }

    func receive(subscription: any Subscription) {
      log.append(.subscription(String(describing: subscription)))
      subscriptions.append(UncheckedBox(subscription))
      if demand > 0 { subscription.request(demand) }
    }

    func receive(_ input: DispatchTime) -> Subscribers.Demand {
      log.append(.tick(input))
      return perValue
    }

    func receive(completion: Subscribers.Completion<Never>) { log.append(.finished) }
  }

  let queue = DispatchQueue(label: "timer")

  func timer(times: Subscribers.Demand = .unlimited) -> Publishers.DispatchTimer {
    Publishers.timer(queue: queue, interval: .milliseconds(1), times: times)
  }

  @Test func theExampleDoesWhatItSays() async {
    let log = EventLog<DispatchTime?>()
    let countdown = Publishers.timer(queue: .global(), interval: .milliseconds(1), times: .max(3))
    let subscription = countdown.sink { _ in
      log.append(nil)
    } receiveValue: {
      log.append($0)
    }
    #expect(await log.wait(count: 4))
    #expect(log.events.map { $0 == nil } == [false, false, false, true])
    withExtendedLifetime(subscription) {}
  }

  @Test func keepsItsConfiguration() {
    let configuration = Publishers.timer(
      queue: queue, interval: .seconds(1), leeway: .milliseconds(5), times: .max(2)
    ).configuration
    #expect(configuration.queue === queue)
    #expect(configuration.interval == .seconds(1))
    #expect(configuration.leeway == .milliseconds(5))
    #expect(configuration.times == .max(2))
    #expect(DispatchTimerConfiguration(interval: .seconds(2)).times == .unlimited)
  }

  @Test func finishesAfterItsTimesHoweverTheyAreAskedFor() async throws {
    let recorders = [Recorder(.unlimited), Recorder(.max(3)), Recorder(.max(1), perValue: .max(1))]
    for recorder in recorders {
      timer(times: .max(3)).subscribe(recorder)
      #expect(await recorder.log.wait(count: 5))
      let events = recorder.log.events
      #expect(events.first == .subscription("DispatchTimer"))
      #expect(events.last == .finished)
      let times = events.compactMap { if case .tick(let time) = $0 { time } else { nil } }
      #expect(times.count == 3)
      #expect(times == times.sorted())
    }
  }

  @Test func ticksNoMoreThanAskedFor() async {
    let reserved = Recorder(.max(2))
    let idle = Recorder(.none)
    let eager = Recorder(.unlimited)
    for recorder in [reserved, idle, eager] { timer().subscribe(recorder) }
    #expect(await eager.log.wait(count: 30))
    #expect(await reserved.log.wait(count: 3))
    #expect(idle.ticks == 0)
    reserved.subscription.request(.max(1))
    #expect(await reserved.log.wait(count: 4))
    let seen = eager.ticks
    #expect(await eager.log.wait(count: seen + 10))
    #expect(reserved.ticks == 3)
    for recorder in [reserved, idle, eager] { recorder.subscription.cancel() }
  }

  @Test func ticksThatAreSkippedAreNotCounted() async {
    let recorder = Recorder(.max(1))
    let eager = Recorder(.unlimited)
    timer(times: .max(2)).subscribe(recorder)
    timer().subscribe(eager)
    #expect(await eager.log.wait(count: 10))
    #expect(await recorder.log.wait(count: 2))
    #expect(recorder.log.events.last != .finished)
    recorder.subscription.request(.unlimited)
    #expect(await recorder.log.wait(count: 4))
    #expect(recorder.log.events.last == .finished)
    eager.subscription.cancel()
  }

  @Test func noTimesAtAllFinishAtOnce() {
    let recorder = Recorder(.none)
    timer(times: .none).subscribe(recorder)
    #expect(recorder.log.events == [.subscription("Empty"), .finished])
  }

  @Test func isSilentAfterCancellationAndReleasesTheSubscriber() async {
    weak var weakRecorder: Recorder?
    let kept: any Subscription
    let eager = Recorder(.unlimited)
    timer().subscribe(eager)
    do {
      let recorder = Recorder(.unlimited)
      weakRecorder = recorder
      timer().subscribe(recorder)
      #expect(await recorder.log.wait(count: 3))
      queue.sync { recorder.subscription.cancel() }
      recorder.subscription.request(.max(1))
      let ticks = recorder.ticks
      let seen = eager.ticks
      #expect(await eager.log.wait(count: seen + 10))
      #expect(recorder.ticks == ticks)
      kept = recorder.subscription
    }
    #expect(weakRecorder == nil)
    eager.subscription.cancel()
    withExtendedLifetime(kept) {}
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      let recorder = Recorder(.none)
      Publishers.timer(interval: .seconds(1)).subscribe(recorder)
      recorder.subscription.request(.none)
    }
  }
}
