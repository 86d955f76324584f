import Dispatch
import Foundation
import ReactiveCore
import ReactiveFoundation
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct DispatchQueueSchedulerTests {
  typealias Time = DispatchQueue.SchedulerTimeType
  typealias Stride = Time.Stride

  let queue = DispatchQueue(label: "test")

  func time(_ nanoseconds: UInt64) -> Time { Time(DispatchTime(uptimeNanoseconds: nanoseconds)) }

  // MARK: Times

  @Test func aStrideIsANumberOfNanosecondsAndALiteralIsInSeconds() {
    #expect(Stride.seconds(2).magnitude == 2_000_000_000)
    #expect(Stride.seconds(1.2).magnitude == 1_200_000_000)
    #expect(Stride.milliseconds(2).magnitude == 2_000_000)
    #expect(Stride.microseconds(2).magnitude == 2_000)
    #expect(Stride.nanoseconds(2).timeInterval == .nanoseconds(2))
    #expect((1.2 as Stride).magnitude == 1_200_000_000)
    #expect((2 as Stride).magnitude == 2_000_000_000)
    #expect(Stride(exactly: 2 as UInt64)?.magnitude == 2_000_000_000)
    #expect(Stride(exactly: UInt64.max) == nil)
  }

  @Test(arguments: [
    (DispatchTimeInterval.seconds(2), 2_000_000_000), (.milliseconds(2), 2_000_000),
    (.microseconds(2), 2_000),
    (.nanoseconds(2), 2), (.never, .max), (.seconds(.max), .max), (.seconds(.min), .min),
    (.milliseconds(.max), .max), (.microseconds(.min), .min), (.nanoseconds(.max), .max),
  ])
  func aStrideIsMadeOfAnInterval(interval: DispatchTimeInterval, nanoseconds: Int) {
    #expect(Stride(interval).magnitude == nanoseconds)
  }

  @Test func strideArithmeticStopsAtTheEndsOfTheRange() {
    let (longest, shortest) = (Stride.nanoseconds(.max), Stride.nanoseconds(.min))
    #expect(longest + 1 == longest)
    #expect(shortest + -1 == shortest)
    #expect(longest - -1 == longest)
    #expect(shortest - 1 == shortest)
    #expect(longest * longest == longest)
    #expect(longest * -5 == -longest)
    #expect(-shortest == longest)
    #expect(Stride.seconds(1e30) == longest)
    #expect(Stride.seconds(-Double.infinity) == shortest)
    #expect(Stride.seconds(Double.nan) == 0)
    #expect(Stride.seconds(Int.max) == longest)
    #expect(Stride.milliseconds(.min) == shortest)
  }

  @Test func strideArithmetic() {
    var stride: Stride = .microseconds(7) - .nanoseconds(12)
    #expect(stride.magnitude == 6_988)
    stride += .nanoseconds(12)
    stride -= .microseconds(8)
    #expect(stride == .microseconds(-1))
    stride.negate()
    #expect(stride == .microseconds(1))
    #expect(.seconds(3) * .milliseconds(-500) == Stride.milliseconds(-1500))
    #expect(Stride.microseconds(-3) * .nanoseconds(10) == 0)
    #expect(Stride.nanoseconds(-2) > .microseconds(-10))
  }

  @Test func distancesHaveASignAndStopAtTheEndsOfTheRange() {
    #expect(time(10_000).distance(to: time(10_431)) == .nanoseconds(431))
    #expect(time(10_431).distance(to: time(10_000)) == .nanoseconds(-431))
    #expect(time(1).distance(to: Time(.distantFuture)) == .nanoseconds(.max))
    #expect(Time(.distantFuture).distance(to: time(1)) == .nanoseconds(-.max))
    #expect(Time(.distantFuture).distance(to: Time(.distantFuture)) == 0)
  }

  @Test func advancingStopsAtTheEndsOfTheRange() {
    #expect(time(10_000).advanced(by: .nanoseconds(431)) == time(10_431))
    #expect(time(10_000).advanced(by: .nanoseconds(-220)) == time(9_780))
    #expect(time(10_000).advanced(by: .nanoseconds(.max)) == Time(.distantFuture))
    #expect(time(10).advanced(by: .nanoseconds(-1_000)) == time(1))
    #expect(time(10).advanced(by: .nanoseconds(.min)) == time(1))
    #expect(Time(.distantFuture).advanced(by: -1) == Time(.distantFuture))
  }

  @Test func timesCompareAndHash() {
    #expect(time(1) < time(2))
    #expect(time(2) < Time(.distantFuture))
    #expect(Set([time(1), time(1), time(2)]).count == 2)
  }

  @Test func timesAndStridesSurviveEncoding() throws {
    let bytes = try JSONEncoder().encode([time(42)])
    #expect(String(decoding: bytes, as: UTF8.self) == "[42]")
    #expect(try JSONDecoder().decode([Time].self, from: bytes) == [time(42)])
    let strideBytes = try JSONEncoder().encode(Stride.nanoseconds(419_872))
    #expect(String(decoding: strideBytes, as: UTF8.self) == #"{"_nanoseconds":419872}"#)
    #expect(try JSONDecoder().decode(Stride.self, from: strideBytes) == .nanoseconds(419_872))
  }

  @Test func optionsAreEmptyUnlessGiven() {
    let options = DispatchQueue.SchedulerOptions()
    #expect(options.qos == .unspecified)
    #expect(options.flags.isEmpty)
    #expect(options.group == nil)
  }

  // MARK: Running

  @Test func aSerialQueueRunsFunctionsInOrder() {
    let order = Mutex<[Int]>([])
    let done = DispatchSemaphore(value: 0)
    for number in 0..<1_000 {
      let options = number.isMultiple(of: 2) ? nil : DispatchQueue.SchedulerOptions(qos: .utility)
      queue.schedule(options: options) { order.withLock { $0.append(number) } }
    }
    queue.schedule { done.signal() }
    #expect(done.wait(timeout: .now() + 60) == .success)
    #expect(order.withLock { $0 } == Array(0..<1_000))
  }

  @Test(arguments: [0, 20_000_000])
  func aDelayedFunctionIsNeverEarly(nanoseconds: Int) {
    let due = queue.now.advanced(by: .nanoseconds(nanoseconds))
    let ran = Mutex<Time?>(nil)
    let done = DispatchSemaphore(value: 0)
    queue.schedule(after: due, tolerance: .milliseconds(1)) { [queue] in
      ran.withLock { $0 = queue.now }
      done.signal()
    }
    #expect(done.wait(timeout: .now() + 60) == .success)
    #expect(ran.withLock { $0! } >= due)
  }

  @Test func aMomentInThePastIsDueAtOnce() {
    let done = DispatchSemaphore(value: 0)
    queue.schedule(after: queue.now.advanced(by: -3_600)) { done.signal() }
    #expect(done.wait(timeout: .now() + 60) == .success)
  }

  @Test func theGroupWaitsForWhatIsScheduled() {
    let group = DispatchGroup()
    let count = Mutex(0)
    let options = DispatchQueue.SchedulerOptions(qos: .userInitiated, flags: .barrier, group: group)
    queue.schedule(options: options) { count.withLock { $0 += 1 } }
    queue.schedule(after: queue.now.advanced(by: .milliseconds(5)), tolerance: 0, options: options) {
      count.withLock { $0 += 1 }
    }
    #expect(group.wait(timeout: .now() + 60) == .success)
    #expect(count.withLock { $0 } == 2)
  }

  @Test(arguments: [false, true])
  func aRepeatingFunctionRunsUntilItIsCancelled(hasOptions: Bool) {
    let done = DispatchSemaphore(value: 0)
    let start = queue.now.advanced(by: .milliseconds(2))
    let times = Mutex<[Time]>([])
    let repetition = queue.schedule(
      after: start, interval: .milliseconds(1), tolerance: .microseconds(100),
      options: hasOptions ? .init() : nil
    ) { [queue] in
      let count = times.withLock {
        $0.append(queue.now)
        return $0.count
      }
      if count == 5 { done.signal() }
    }
    #expect(repetition is AnyCancellable)
    #expect(done.wait(timeout: .now() + 60) == .success)
    repetition.cancel()
    queue.sync {}  // one more may have been running
    let count = times.withLock { $0.count }
    queue.sync {}
    #expect(times.withLock { $0.count } == count)
    for (index, time) in times.withLock({ $0 }).enumerated() {
      #expect(time >= start.advanced(by: .milliseconds(index)))
    }
  }

  @Test func cancellingReleasesTheFunctionAtOnceAlthoughTheQueueIsBusy() {
    final class Probe {}
    weak var probe: Probe?
    queue.suspend()
    do {
      let held = Probe()
      probe = held
      let repetition = queue.schedule(after: queue.now, interval: .milliseconds(1)) {
        withExtendedLifetime(held) {}
      }
      repetition.cancel()
    }
    #expect(probe == nil)
    queue.resume()
  }

  @Test func aFunctionThatHasRunIsReleased() {
    final class Probe: Sendable {
      let done: DispatchSemaphore
      init(_ done: DispatchSemaphore) { self.done = done }
      deinit { done.signal() }
    }
    let done = DispatchSemaphore(value: 0)
    do {
      let probe = Probe(done)
      queue.schedule { withExtendedLifetime(probe) {} }
    }
    do {
      let probe = Probe(done)
      queue.schedule(after: queue.now.advanced(by: .milliseconds(1))) { withExtendedLifetime(probe) {} }
    }
    do {
      let probe = Probe(done)
      queue.schedule(after: Time(.distantFuture)) { withExtendedLifetime(probe) {} }
    }
    for _ in 0..<3 { #expect(done.wait(timeout: .now() + 60) == .success) }
  }

  @Test func releasingTheRepetitionCancelsIt() {
    let done = DispatchSemaphore(value: 0)
    var repetition: (any Cancellable)? = queue.schedule(after: queue.now, interval: .milliseconds(1)) {
      done.signal()
    }
    #expect(done.wait(timeout: .now() + 60) == .success)
    _ = repetition
    repetition = nil
    queue.sync {}
    while done.wait(timeout: .now()) == .success {}
    queue.sync {}
    #expect(done.wait(timeout: .now()) == .timedOut)
  }

  @Test func anIntervalOfNoTimeRepeatsAllTheSame() {
    let done = DispatchSemaphore(value: 0)
    let repetition = queue.schedule(after: queue.now, interval: .nanoseconds(-5)) { done.signal() }
    for _ in 0..<3 { #expect(done.wait(timeout: .now() + 60) == .success) }
    repetition.cancel()
  }

  @Test func pipelinesOnAQueueMayChangeHands() {
    func take(_ pipeline: some Publisher & Sendable) {}
    take(Just(1).debounce(for: 1, scheduler: queue).throttle(for: 1, scheduler: queue, latest: true))
    take(Just(1).delay(for: 1, scheduler: queue).subscribe(on: queue).collect(.byTime(queue, 1)))
    take(Just(1).collect(2).measureInterval(using: queue))
  }

  @Test func schedulingAndCancellingMayRace() {
    let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let runs = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<200 {
        let repetition = concurrent.schedule(after: concurrent.now, interval: .microseconds(10)) {
          runs.add(1, ordering: .relaxed)
        }
        repetition.cancel()
      }
    }
    let done = DispatchSemaphore(value: 0)
    concurrent.schedule(options: .init(flags: .barrier)) { done.signal() }
    #expect(done.wait(timeout: .now() + 60) == .success)
  }
}
