import SluiceWire
import Testing

/// A ``Keepalive`` by reference, since an expectation can't change a value.
private final class Watch {
  private var keepalive: Keepalive

  init(milliseconds: UInt32, now: UInt64) {
    keepalive = Keepalive(milliseconds: milliseconds, now: now)
  }

  var deadline: UInt64? { keepalive.deadline }
  func heard(at now: UInt64) { keepalive.heard(at: now) }
  func silence(at now: UInt64) -> UInt64 { keepalive.silence(at: now) }
  func check(at now: UInt64) -> Keepalive.Action { keepalive.check(at: now) }
}

@Suite("Keepalive")
struct KeepaliveTests {
  private static let second: UInt64 = 1_000_000_000

  @Test("asks after half the deadline, once, and gives up after all of it")
  func silence() {
    let start = 5 * Self.second
    let keepalive = Watch(milliseconds: 10_000, now: start)
    #expect(keepalive.deadline == 10 * Self.second)
    #expect(keepalive.check(at: start) == .sleep(until: 10 * Self.second))
    #expect(keepalive.check(at: 10 * Self.second - 1) == .sleep(until: 10 * Self.second))
    #expect(keepalive.check(at: 10 * Self.second) == .ping(next: 15 * Self.second))
    #expect(keepalive.check(at: 11 * Self.second) == .sleep(until: 15 * Self.second))
    #expect(keepalive.check(at: 15 * Self.second - 1) == .sleep(until: 15 * Self.second))
    #expect(keepalive.check(at: 15 * Self.second) == .expired)
    #expect(keepalive.check(at: 99 * Self.second) == .expired)
  }

  @Test("any byte is a sign of life, and the next silence is asked about again")
  func signOfLife() {
    let keepalive = Watch(milliseconds: 2000, now: 0)
    #expect(keepalive.check(at: Self.second) == .ping(next: 2 * Self.second))
    keepalive.heard(at: Self.second + 1)
    #expect(keepalive.check(at: Self.second + 2) == .sleep(until: 2 * Self.second + 1))
    #expect(keepalive.check(at: 2 * Self.second + 1) == .ping(next: 3 * Self.second + 1))
    #expect(keepalive.silence(at: 3 * Self.second) == 2 * Self.second - 1)
  }

  @Test("a check that comes too late for a question gives up")
  func lateCheck() {
    let keepalive = Watch(milliseconds: 1000, now: 0)
    #expect(keepalive.check(at: 5 * Self.second) == .expired)
  }

  @Test("a deadline of 0 is none")
  func never() {
    let keepalive = Watch(milliseconds: 0, now: 0)
    #expect(keepalive.deadline == nil)
    #expect(keepalive.check(at: .max) == .sleep(until: .max))
  }

  @Test("a time a little older than the last is no silence")
  func olderTime() {
    let keepalive = Watch(milliseconds: 1000, now: 10)
    #expect(keepalive.silence(at: 9) == 0)
    #expect(keepalive.check(at: 9) == .sleep(until: Self.second / 2 + 10))
    keepalive.heard(at: 5)
    #expect(keepalive.check(at: Self.second + 9) == .ping(next: Self.second + 10))
  }

  @Test("the longest deadline doesn't overflow")
  func longest() {
    let keepalive = Watch(milliseconds: .max, now: 0)
    #expect(keepalive.check(at: 0) == .sleep(until: UInt64(UInt32.max) * 500_000))
    #expect(keepalive.check(at: .max) == .expired)
  }
}
