import Dispatch
import Foundation
import ReactiveCore
import ReactiveFoundation
import ReactiveTestSupport
import Synchronization
import Testing

@Suite struct RunLoopSchedulerTests {
  /// A thread that runs its loop until it is stopped.
  final class Runner: @unchecked Sendable {
    // The loop is set before another thread gets the runner, and this test may use it from any thread.
    private(set) var loop = RunLoop.main
    private let isStopped = Atomic(false)

    /// - Parameter longestSleep: The longest time in seconds until the loop checks whether it was stopped.
    init(longestSleep: TimeInterval = 0.5) {
      let started = DispatchSemaphore(value: 0)
      let thread = Thread { [self] in
        loop = RunLoop.current
        // A loop without timers returns at once.
        loop.add(Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }, forMode: .default)
        started.signal()
        while !isStopped.load(ordering: .acquiring) {
          _ = loop.run(mode: .default, before: Date(timeIntervalSinceNow: longestSleep))
        }
      }
      thread.start()
      started.wait()
    }

    /// Returns when the loop has run all functions that were scheduled before.
    func settle() {
      let done = DispatchSemaphore(value: 0)
      loop.schedule { done.signal() }
      #expect(done.wait(timeout: .now() + 60) == .success)
    }

    /// Lets the thread end at some later time.
    func stop() {
      isStopped.store(true, ordering: .releasing)
    }
  }

  @Test func aFunctionWakesALoopThatSleeps() {
    let runner = Runner(longestSleep: 3_600)
    runner.settle()
    runner.settle()
    runner.stop()
  }

  @Test func functionsRunInOrderOnTheLoopsThread() {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    let order = Mutex<[Int]>([])
    for number in 0..<200 {
      loop.value.schedule {
        #expect(RunLoop.current === loop.value)
        order.withLock { $0.append(number) }
      }
    }
    runner.settle()
    #expect(order.withLock { $0 } == Array(0..<200))
  }

  @Test func aFunctionScheduledFromTheLoopRunsLater() {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    let order = Mutex<[Int]>([])
    let done = DispatchSemaphore(value: 0)
    loop.value.schedule {
      loop.value.schedule {
        order.withLock { $0.append(2) }
        done.signal()
      }
      order.withLock { $0.append(1) }
    }
    #expect(done.wait(timeout: .now() + 60) == .success)
    #expect(order.withLock { $0 } == [1, 2])
  }

  @Test(arguments: [-1, 0, 0.02])
  func aDelayedFunctionIsNeverEarly(delay: TimeInterval) {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    let due = loop.value.now.advanced(by: .init(delay))
    let ran = Mutex<Date?>(nil)
    let done = DispatchSemaphore(value: 0)
    loop.value.schedule(after: due, tolerance: .milliseconds(1)) {
      ran.withLock { $0 = Date() }
      done.signal()
    }
    #expect(done.wait(timeout: .now() + 60) == .success)
    #expect(ran.withLock { $0! } >= due.date)
  }

  @Test func aFunctionForTheDistantFutureIsLetGoOf() {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    final class Probe {}
    weak var probe: Probe?
    do {
      let held = Probe()
      probe = held
      loop.value.schedule(after: .init(.distantFuture)) { withExtendedLifetime(held) {} }
    }
    #expect(probe == nil)
  }

  @Test func aRepeatingFunctionRunsUntilItIsCancelledFromAnotherThread() {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    let done = DispatchSemaphore(value: 0)
    let start = loop.value.now.advanced(by: .milliseconds(2))
    let times = Mutex<[Date]>([])
    let repetition = loop.value.schedule(after: start, interval: .milliseconds(1)) {
      let count = times.withLock {
        $0.append(Date())
        return $0.count
      }
      if count == 5 { done.signal() }
    }
    #expect(repetition is AnyCancellable)
    #expect(done.wait(timeout: .now() + 60) == .success)
    repetition.cancel()
    runner.settle()
    let count = times.withLock { $0.count }
    runner.settle()
    #expect(times.withLock { $0.count } == count)
    #expect(times.withLock { $0.first! } >= start.date)
  }

  @Test func cancellingReleasesTheFunctionAtOnce() {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    final class Probe {}
    weak var probe: Probe?
    do {
      let held = Probe()
      probe = held
      let repetition = loop.value.schedule(after: loop.value.now.advanced(by: 3_600), interval: 1) {
        withExtendedLifetime(held) {}
      }
      repetition.cancel()
      repetition.cancel()
    }
    #expect(probe == nil)
  }

  @Test func nowIsTheDate() {
    let runner = Runner()
    defer { runner.stop() }
    let loop = UncheckedBox(runner.loop)
    let earlier = Date()
    #expect(loop.value.now.date >= earlier)
    #expect(loop.value.minimumTolerance == 0)
  }
}
