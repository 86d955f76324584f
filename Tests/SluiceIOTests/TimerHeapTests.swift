import Testing

@testable import SluiceIO

@Suite struct TimerHeapTests {
  /// Timers that are kept in a plain list.
  private struct Model {
    var timers: [(deadline: UInt64, order: Int, token: TimerToken, name: Int)] = []

    mutating func popDue(at now: UInt64) -> Int? {
      let due = timers.filter { $0.deadline <= now }.min { ($0.deadline, $0.order) < ($1.deadline, $1.order) }
      guard let due else { return nil }
      timers.removeAll { $0.order == due.order }
      return due.name
    }
  }

  @Test(arguments: 1...20) func randomOperationsAgreeWithAPlainList(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var heap = TimerHeap()
    var model = Model()
    var tokens: [TimerToken] = []
    var fired: [Int] = []
    var expected: [Int] = []
    let log = Log()
    for step in 0..<500 {
      switch random.next(in: 0...9) {
      case 0...4:
        let deadline = random.next(below: 1_000)
        let token = heap.schedule(at: MonotonicTime(nanoseconds: deadline)) { log.fired.append(step) }
        #expect(!tokens.contains(token))
        tokens.append(token)
        model.timers.append((deadline, step, token, step))
      case 5...7 where !tokens.isEmpty:
        let token = tokens[random.next(in: 0...tokens.count - 1)]
        let known = model.timers.contains { $0.token == token }
        #expect((heap.cancel(token) != nil) == known)
        model.timers.removeAll { $0.token == token }
      default:
        let now = random.next(below: 1_000)
        heap.popDue(at: MonotonicTime(nanoseconds: now), before: heap.mark)?()
        if let name = model.popDue(at: now) { expected.append(name) }
      }
      #expect(heap.count == model.timers.count)
      #expect(heap.nextDeadline == model.timers.map(\.deadline).min())
      #if DEBUG
        heap.checkInvariants()
      #endif
    }
    fired = log.fired
    #expect(fired == expected)
    #expect(heap.removeAll().count == model.timers.count)
    #expect(heap.count == 0)
  }

  private final class Log { var fired: [Int] = [] }

  @Test func rearmingATimerForEverNeedsNoMoreMemory() {
    var heap = TimerHeap()
    var tokens = (0..<100).map { heap.schedule(at: MonotonicTime(nanoseconds: $0)) {} }
    for round in 0..<10_000 {
      let index = round % tokens.count
      _ = heap.cancel(tokens[index])
      tokens[index] = heap.schedule(at: MonotonicTime(nanoseconds: UInt64(round + 1_000))) {}
    }
    #expect(heap.count == 100)
    #expect(heap.slotCount <= 101)
  }

  @Test func aTimerScheduledAfterTheMarkWaitsForTheNextTurn() {
    var heap = TimerHeap()
    _ = heap.schedule(at: MonotonicTime(nanoseconds: 5)) {}
    let mark = heap.mark
    _ = heap.schedule(at: MonotonicTime(nanoseconds: 1)) {}
    let now = MonotonicTime(nanoseconds: 10)
    #expect(heap.popDue(at: now, before: mark) == nil)
    #expect(heap.popDue(at: now, before: heap.mark) != nil)
    #expect(heap.popDue(at: now, before: heap.mark) != nil)
    #expect(heap.popDue(at: now, before: heap.mark) == nil)
  }
}
