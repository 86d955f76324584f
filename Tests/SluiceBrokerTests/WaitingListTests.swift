import SluiceIO
import Testing

@testable import SluiceBroker

private final class WaiterProbe: Waiter {
  let name: Int
  let deadline: MonotonicTime
  var isOver = false

  init(_ name: Int, until milliseconds: UInt64) {
    self.name = name
    deadline = MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }
}

@Suite("what waits for a route, each until its deadline")
struct WaitingListTests {
  private var list = WaitingList<WaiterProbe>()

  private func at(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  private mutating func add(_ name: Int, until milliseconds: UInt64) -> WaiterProbe {
    let probe = WaiterProbe(name, until: milliseconds)
    list.append(probe)
    return probe
  }

  private mutating func leave(_ probe: WaiterProbe) {
    probe.isOver = true
    list.left()
  }

  @Test("those are late whose deadline has come, but for those that don't wait any more")
  mutating func late() {
    let probes = [add(1, until: 5), add(2, until: 3), add(3, until: 9), add(4, until: 3)]
    #expect(list.late(at: at(2)).map(\.name) == [])
    leave(probes[3])
    #expect(list.late(at: at(3)).map(\.name) == [2])
    #expect(list.late(at: at(5)).map(\.name) == [1, 2])
  }

  @Test("the next deadline is that of one that still waits")
  mutating func deadline() {
    let probes = [add(1, until: 5), add(2, until: 3)]
    var next = list.nextDeadline()
    #expect(next == at(3))
    leave(probes[1])
    next = list.nextDeadline()
    #expect(next == at(5))
    leave(probes[0])
    next = list.nextDeadline()
    #expect(next == nil)
  }

  @Test("all that are tried again are taken in the order in which they came, and may come back meanwhile")
  mutating func again() {
    for name in 1...3 { _ = add(name, until: 5) }
    let taken = list.takeAll()
    #expect(taken.map(\.name) == [1, 2, 3])
    list.append(taken[1])
    #expect(list.takeAll().map(\.name) == [2])
    let rest = list.takeAll()
    #expect(rest.isEmpty)
  }

  @Test("those that have left are let go when they are many, and all others stay")
  mutating func memory() {
    struct Watch { weak var probe: WaiterProbe? }
    var watches: [Watch] = []
    for name in 0..<1_000 {
      let probe = add(name, until: 5)
      watches.append(Watch(probe: probe))
    }
    for index in 0..<990 { leave(watches[index].probe!) }
    #expect(watches.count { $0.probe != nil } <= 10 + 65)
    #expect(list.late(at: at(5)).map(\.name) == Array(990..<1_000))
  }
}
