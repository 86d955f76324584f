import Foundation
import PortableCombine
import Testing

/// The operators that need a scheduler, on each scheduler, each overload once.
@Suite struct TimeSurfaceTests {
  struct Broken: Error, Equatable {}

  typealias Numbers = AnyPublisher<Int, Never>
  typealias Fallible = AnyPublisher<Int, Broken>
  typealias P = Publishers

  let numbers: Numbers = [1, 2, 3].publisher.eraseToAnyPublisher()
  let fallible: Fallible = Fail(error: Broken()).eraseToAnyPublisher()

  @Test func onDispatchQueues() {
    typealias Q = DispatchQueue
    let queue = DispatchQueue(label: "surface")
    expectType(of: numbers.receive(on: queue), is: P.ReceiveOn<Numbers, Q>.self)
    expectType(of: numbers.subscribe(on: queue), is: P.SubscribeOn<Numbers, Q>.self)
    expectType(of: numbers.delay(for: 1, scheduler: queue), is: P.Delay<Numbers, Q>.self)
    expectType(of: numbers.debounce(for: .milliseconds(5), scheduler: queue), is: P.Debounce<Numbers, Q>.self)
    expectType(
      of: numbers.throttle(for: .seconds(0.5), scheduler: queue, latest: true),
      is: P.Throttle<Numbers, Q>.self)
    expectType(of: numbers.timeout(.microseconds(7), scheduler: queue), is: P.Timeout<Numbers, Q>.self)
    expectType(of: numbers.measureInterval(using: queue), is: P.MeasureInterval<Numbers, Q>.self)
    let _: any Publisher<Q.SchedulerTimeType.Stride, Never> = numbers.measureInterval(using: queue)
    let options = Q.SchedulerOptions(qos: .utility, flags: .barrier, group: DispatchGroup())
    _ = numbers.receive(on: Q.main, options: options)
    _ = numbers.subscribe(on: Q.global(), options: .init(qos: .background))
    _ = numbers.delay(for: .nanoseconds(3), tolerance: .milliseconds(1), scheduler: queue, options: options)
    _ = numbers.debounce(for: 0.5, scheduler: queue, options: options)
    _ = fallible.timeout(1, scheduler: queue, options: options, customError: { Broken() })
    #expect(Q.SchedulerTimeType.Stride.seconds(1).timeInterval == .seconds(1))
    #expect(queue.now < queue.now.advanced(by: .seconds(60)))
    #expect(queue.minimumTolerance == .zero)
  }

  @Test func onRunLoops() {
    let loop = RunLoop.main
    expectType(of: numbers.receive(on: loop), is: P.ReceiveOn<Numbers, RunLoop>.self)
    expectType(of: numbers.subscribe(on: loop), is: P.SubscribeOn<Numbers, RunLoop>.self)
    expectType(of: numbers.delay(for: 1, scheduler: loop), is: P.Delay<Numbers, RunLoop>.self)
    expectType(of: numbers.debounce(for: 0.1, scheduler: loop), is: P.Debounce<Numbers, RunLoop>.self)
    expectType(
      of: numbers.throttle(for: .seconds(1), scheduler: loop, latest: false),
      is: P.Throttle<Numbers, RunLoop>.self)
    expectType(of: numbers.timeout(1, scheduler: loop), is: P.Timeout<Numbers, RunLoop>.self)
    expectType(of: numbers.measureInterval(using: loop), is: P.MeasureInterval<Numbers, RunLoop>.self)
    let interval: RunLoop.SchedulerTimeType.Stride = .milliseconds(500)
    #expect(interval.timeInterval == 0.5)
    #expect(RunLoop.SchedulerTimeType(Date.distantPast).date == .distantPast)
  }

  @Test func onOperationQueues() {
    typealias Q = OperationQueue
    let queue = OperationQueue()
    expectType(of: numbers.receive(on: queue), is: P.ReceiveOn<Numbers, Q>.self)
    expectType(of: numbers.subscribe(on: queue), is: P.SubscribeOn<Numbers, Q>.self)
    expectType(of: numbers.delay(for: 1, scheduler: queue), is: P.Delay<Numbers, Q>.self)
    expectType(of: numbers.debounce(for: 0.1, scheduler: queue), is: P.Debounce<Numbers, Q>.self)
    expectType(
      of: numbers.throttle(for: .seconds(1), scheduler: queue, latest: false), is: P.Throttle<Numbers, Q>.self
    )
    expectType(of: numbers.timeout(1, scheduler: queue), is: P.Timeout<Numbers, Q>.self)
    expectType(of: numbers.measureInterval(using: queue), is: P.MeasureInterval<Numbers, Q>.self)
    let interval: Q.SchedulerTimeType.Stride = .init(2)
    #expect(interval.timeInterval == 2)
    #expect(Q.SchedulerTimeType(Date.distantPast) < queue.now)
  }

  @Test func atOnce() {
    typealias I = ImmediateScheduler
    let scheduler = I.shared
    expectType(of: numbers.receive(on: scheduler), is: P.ReceiveOn<Numbers, I>.self)
    expectType(of: numbers.subscribe(on: scheduler), is: P.SubscribeOn<Numbers, I>.self)
    expectType(of: numbers.delay(for: 1, scheduler: scheduler), is: P.Delay<Numbers, I>.self)
    expectType(of: numbers.debounce(for: 1, scheduler: scheduler), is: P.Debounce<Numbers, I>.self)
    expectType(
      of: numbers.throttle(for: 1, scheduler: scheduler, latest: false), is: P.Throttle<Numbers, I>.self)
    expectType(of: numbers.timeout(1, scheduler: scheduler), is: P.Timeout<Numbers, I>.self)
    expectType(of: numbers.measureInterval(using: scheduler), is: P.MeasureInterval<Numbers, I>.self)
    var isRun = false
    scheduler.schedule { isRun = true }
    #expect(isRun)
  }

  @Test func grouping() {
    typealias Q = DispatchQueue
    let queue = DispatchQueue(label: "surface")
    expectType(of: numbers.collect(), is: P.Collect<Numbers>.self)
    expectType(of: numbers.collect(2), is: P.CollectByCount<Numbers>.self)
    expectType(of: numbers.collect(.byTime(queue, .seconds(1))), is: P.CollectByTime<Numbers, Q>.self)
    expectType(
      of: numbers.collect(.byTimeOrCount(queue, .seconds(1), 10), options: .init(qos: .utility)),
      is: P.CollectByTime<Numbers, Q>.self)
    expectType(
      of: numbers.collect(.byTime(RunLoop.main, .seconds(1))), is: P.CollectByTime<Numbers, RunLoop>.self)
    expectType(
      of: numbers.collect(.byTime(ImmediateScheduler.shared, 1)),
      is: P.CollectByTime<Numbers, ImmediateScheduler>.self)
    _ = P.CollectByTime(upstream: numbers, strategy: .byTime(queue, 1), options: nil)
    #expect(P.CollectByCount(upstream: numbers, count: 3).count == 3)
  }

  @Test func thePublishersHaveInitialisers() {
    let scheduler = ImmediateScheduler.shared
    _ = P.ReceiveOn(upstream: numbers, scheduler: scheduler, options: nil)
    _ = P.SubscribeOn(upstream: numbers, scheduler: scheduler, options: nil)
    _ = P.Delay(upstream: numbers, interval: 1, tolerance: 1, scheduler: scheduler, options: nil)
    _ = P.Debounce(upstream: numbers, dueTime: 1, scheduler: scheduler, options: nil)
    _ = P.Throttle(upstream: numbers, interval: 1, scheduler: scheduler, latest: true)
    _ = P.Timeout(upstream: numbers, interval: 1, scheduler: scheduler, options: nil, customError: nil)
    _ = P.MeasureInterval(upstream: numbers, scheduler: scheduler)
  }

  @Test func schedulersSchedule() {
    func use<S: Scheduler>(_ scheduler: S) {
      scheduler.schedule {}
      scheduler.schedule(options: nil) {}
      let later = scheduler.now.advanced(by: .seconds(3600))
      scheduler.schedule(after: later) {}
      scheduler.schedule(after: later, tolerance: scheduler.minimumTolerance) {}
      scheduler.schedule(after: later, tolerance: .zero, options: nil) {}
      let plain: any Cancellable = scheduler.schedule(after: later, interval: .seconds(1)) {}
      let tolerant = scheduler.schedule(after: later, interval: .seconds(1), tolerance: .milliseconds(1)) {}
      let all = scheduler.schedule(after: later, interval: .seconds(1), tolerance: .zero, options: nil) {}
      plain.cancel()
      tolerant.cancel()
      all.cancel()
    }
    use(DispatchQueue(label: "surface"))
    use(RunLoop.current)
    use(OperationQueue())
    use(ImmediateScheduler.shared)
  }
}
