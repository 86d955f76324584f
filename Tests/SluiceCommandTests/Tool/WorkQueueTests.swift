import Synchronization
import Testing

@testable import SluiceTool

@Suite("Work on a thread of its own")
struct WorkQueueTests {
  @Test("Everything is done, in order")
  func order() {
    let done = Shared(Mutex<[Int]>([]))
    let finished = Semaphore()
    let queue = WorkQueue<Int>(limit: 10) { item in
      done.value.withLock { $0.append(item) }
      if item == 999 { finished.signal() }
    }
    for item in 0..<1000 { queue.add(item, weight: 1) { false } }
    finished.wait()
    #expect(done.value.withLock { $0 } == Array(0..<1000))
  }

  @Test("The adder waits when too much waits already, unless impatient")
  func bound() {
    let mayGoOn = Semaphore()
    let working = Semaphore()
    let queue = WorkQueue<Int>(limit: 2) { _ in
      working.signal()
      mayGoOn.wait()
    }
    queue.add(0, weight: 3) { false }
    working.wait()
    // The first one still weighs too much, but an impatient one gets through.
    let asked = Shared(Atomic(0))
    queue.add(1, weight: 1) {
      asked.value.add(1, ordering: .relaxed)
      return true
    }
    let timesAsked = asked.value.load(ordering: .relaxed)
    #expect(timesAsked == 1)
    #expect(!queue.isIdle)
    mayGoOn.signal()
    working.wait()
    queue.add(2, weight: 1) { false }
    mayGoOn.signal()
    working.wait()
    mayGoOn.signal()
  }

  @Test("Closing drops what waits, and tells when the work under way is done")
  func close() {
    let mayGoOn = Semaphore()
    let working = Semaphore()
    let closed = Semaphore()
    let count = Shared(Atomic(0))
    let queue = WorkQueue<Int>(limit: 100) { _ in
      count.value.add(1, ordering: .relaxed)
      working.signal()
      mayGoOn.wait()
    }
    for item in 0..<5 { queue.add(item, weight: 1) { false } }
    working.wait()
    queue.close { closed.signal() }
    queue.add(6, weight: 1) { false }
    mayGoOn.signal()
    closed.wait()
    let timesWorked = count.value.load(ordering: .relaxed)
    #expect(timesWorked == 1)
    let isAnsweredAtOnce = Shared(Atomic(false))
    queue.close { isAnsweredAtOnce.value.store(true, ordering: .relaxed) }
    let isAnswered = isAnsweredAtOnce.value.load(ordering: .relaxed)
    #expect(isAnswered)
  }
}
