import Foundation
import ReactiveTestSupport
import Synchronization
import Testing

@testable import ReactiveCore

/// The lock that subjects and operators use.
@Suite struct LockTests {
  /// A lock, and a number that it guards.
  final class Counter: @unchecked Sendable {
    // Sendable because the lock guards the number.
    let lock = Lock()
    var number = 0
  }

  @Test func oneThreadAtATimeIsInside() {
    let counter = Counter()
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<20_000 { counter.lock.withLock { counter.number += 1 } }
    }
    #expect(counter.lock.withLock { counter.number } == 160_000)
  }

  @Test func theResultOfTheBodyIsReturned() {
    let counter = Counter()
    #expect(counter.lock.withLock { (counter.number, "a") } == (0, "a"))
  }

  #if os(Linux)
    /// Threads that have begun to sleep are woken one after the other.
    @Test func threadsThatSleepAreWoken() {
      let counter = Counter()
      let isHeld = DispatchSemaphore(value: 0)
      let done = DispatchGroup()
      done.enter()
      thread {
        counter.lock.withLock {
          isHeld.signal()
          // A thread marks the word before it sleeps.
          while counter.lock.word.load(ordering: .relaxed) != Lock.contended { sched_yield() }
          counter.number += 1
        }
        done.leave()
      }
      isHeld.wait()
      for _ in 0..<4 {
        done.enter()
        thread {
          counter.lock.withLock { counter.number += 1 }
          done.leave()
        }
      }
      done.wait()
      #expect(counter.lock.withLock { counter.number } == 5)
      #expect(counter.lock.word.load(ordering: .relaxed) == Lock.free)
    }

    /// Runs the body on a thread of its own: Dispatch starts no more threads than there are processors.
    private func thread(_ body: @escaping @Sendable () -> Void) {
      Thread.detachNewThread(body)
    }
  #endif
}
