import Dispatch
import Foundation
import ReactiveCore
import ReactiveFoundation
import Synchronization
import Testing

@Suite struct OperationQueueSchedulerTests {
  let queue = OperationQueue()

  init() {
    queue.maxConcurrentOperationCount = 1
  }

  @Test func functionsRunInOrder() {
    let order = Mutex<[Int]>([])
    for number in 0..<200 {
      queue.schedule { order.withLock { $0.append(number) } }
    }
    queue.waitUntilAllOperationsAreFinished()
    #expect(order.withLock { $0 } == Array(0..<200))
  }

  @Test(arguments: [-1, 0, 0.02])
  func aDelayedFunctionIsNeverEarly(delay: TimeInterval) {
    let due = queue.now.advanced(by: .init(delay))
    let ran = Mutex<Date?>(nil)
    queue.schedule(after: due, tolerance: .milliseconds(1)) { ran.withLock { $0 = Date() } }
    queue.waitUntilAllOperationsAreFinished()
    #expect(ran.withLock { $0! } >= due.date)
  }

  @Test func aDelayedFunctionIsAnOperationThatCanBeCancelled() {
    let count = Mutex(0)
    queue.schedule(after: queue.now.advanced(by: 3_600)) { count.withLock { $0 += 1 } }
    #expect(queue.operationCount == 1)
    queue.cancelAllOperations()
    queue.waitUntilAllOperationsAreFinished()
    #expect(count.withLock { $0 } == 0)
  }

  @Test func aDelayedFunctionLetsOthersPass() {
    let done = DispatchSemaphore(value: 0)
    queue.schedule(after: queue.now.advanced(by: 3_600)) {}
    queue.schedule { done.signal() }
    #expect(done.wait(timeout: .now() + 60) == .success)
    queue.cancelAllOperations()
  }

  @Test func aFunctionForTheDistantFutureIsLetGoOf() {
    queue.schedule(after: .init(.distantFuture)) {}
    queue.schedule(after: queue.now.advanced(by: .init(.infinity))) {}
    queue.schedule(after: .init(.distantFuture), interval: 1) {}.cancel()
    #expect(queue.operationCount == 0)
  }

  @Test func aRepeatingFunctionRunsUntilItIsCancelled() {
    let done = DispatchSemaphore(value: 0)
    let start = queue.now.advanced(by: .milliseconds(2))
    let times = Mutex<[Date]>([])
    let repetition = queue.schedule(after: start, interval: .milliseconds(1)) {
      let count = times.withLock {
        $0.append(Date())
        return $0.count
      }
      if count == 5 { done.signal() }
    }
    #expect(repetition is AnyCancellable)
    #expect(done.wait(timeout: .now() + 60) == .success)
    repetition.cancel()
    queue.waitUntilAllOperationsAreFinished()
    let count = times.withLock { $0.count }
    #expect(queue.operationCount == 0)
    queue.schedule {}
    queue.waitUntilAllOperationsAreFinished()
    #expect(times.withLock { $0.count } == count)
    for (index, time) in times.withLock({ $0 }).enumerated() {
      #expect(time >= start.date.addingTimeInterval(0.000_999 * Double(index)))
    }
  }

  @Test func cancellingReleasesTheFunctionAtOnceAlthoughTheQueueIsBusy() {
    final class Probe {}
    weak var probe: Probe?
    queue.isSuspended = true
    do {
      let held = Probe()
      probe = held
      let repetition = queue.schedule(after: queue.now, interval: 1) { withExtendedLifetime(held) {} }
      repetition.cancel()
      repetition.cancel()
    }
    #expect(probe == nil)
    queue.isSuspended = false
    queue.waitUntilAllOperationsAreFinished()
  }

  @Test func cancellingMayRaceWithRunning() {
    let concurrent = OperationQueue()
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      for _ in 0..<50 {
        let repetition = concurrent.schedule(after: concurrent.now, interval: 0) {}
        repetition.cancel()
      }
    }
    concurrent.waitUntilAllOperationsAreFinished()
    #expect(concurrent.operationCount == 0)
  }

  @Test func nowIsTheDate() {
    let earlier = Date()
    #expect(queue.now.date >= earlier)
    #expect(queue.minimumTolerance == 0)
  }
}
