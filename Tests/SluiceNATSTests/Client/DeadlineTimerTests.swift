import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceNATS

@Suite("the one timer of many deadlines")
struct DeadlineTimerTests {
  /// An owner of several deadlines, of which the earliest counts. Unchecked: used by one thread.
  private final class Owner: @unchecked Sendable {
    let world: SimulatedWorld
    let loop: SimulatedLoop
    var deadlines: [MonotonicTime] = []
    private var timer = DeadlineTimer()
    /// The number of timers set.
    private(set) var made = 0
    private(set) var calls: [MonotonicTime] = []
    /// When each deadline was noticed.
    private(set) var noticed: [MonotonicTime: MonotonicTime] = [:]

    init(seed: UInt64) {
      world = SimulatedWorld(seed: seed, loops: 1, conditions: .calm)
      loop = world.loops[0]
    }

    func at(_ milliseconds: Int) -> MonotonicTime { start + .milliseconds(milliseconds) }
    lazy var start = world.now

    func set() { loop.perform { setHere() } }

    private func setHere() {
      timer.set(deadlines.min(), on: loop, body())
    }

    private func body() -> () -> Void {
      made += 1
      return { [unowned self] in
        timer.fired()
        calls.append(loop.now)
        for deadline in deadlines where deadline <= loop.now { noticed[deadline] = loop.now }
        deadlines.removeAll { $0 <= loop.now }
        setHere()
      }
    }

    func cancel() { loop.perform { timer.cancel(on: loop) } }
  }

  @Test("it stays where the deadline moves away, and looks again when it comes too early")
  func away() {
    let owner = Owner(seed: 1)
    owner.deadlines = [owner.at(10)]
    owner.set()
    for milliseconds in 11...40 {
      owner.deadlines = [owner.at(milliseconds)]
      owner.set()
    }
    #expect(owner.made == 1)
    owner.world.run(for: .milliseconds(100))
    #expect(owner.calls == [owner.at(10), owner.at(40)])
    #expect(owner.made == 2)
  }

  @Test("it comes for an earlier deadline, and only once then")
  func earlier() {
    let owner = Owner(seed: 1)
    owner.deadlines = [owner.at(40)]
    owner.set()
    owner.deadlines = [owner.at(10)]
    owner.set()
    owner.world.run(for: .milliseconds(100))
    #expect(owner.calls == [owner.at(10)])
  }

  @Test("it doesn't come without a deadline, nor when it is cancelled")
  func none() {
    let owner = Owner(seed: 1)
    owner.deadlines = [owner.at(10)]
    owner.set()
    owner.deadlines = []
    owner.set()
    owner.world.run(for: .milliseconds(100))
    #expect(owner.calls == [])
    owner.deadlines = [owner.at(200)]
    owner.set()
    owner.cancel()
    owner.cancel()
    owner.world.run(for: .milliseconds(200))
    #expect(owner.calls == [])
  }

  @Test("whatever the changes, no deadline that stays is missed", arguments: 1...20 as ClosedRange<UInt64>)
  func comparison(seed: UInt64) {
    let owner = Owner(seed: seed)
    var random = SeededRandom(seed: seed)
    _ = owner.start
    for _ in 0..<300 {
      switch random.next(in: 0...4) {
      case 0, 1: owner.deadlines.append(owner.world.now + .milliseconds(random.next(in: 1...50)))
      case 2:
        guard !owner.deadlines.isEmpty else { continue }
        owner.deadlines.remove(at: random.next(in: 0...(owner.deadlines.count - 1)))
      default: owner.world.run(for: .milliseconds(random.next(in: 0...20)))
      }
      owner.set()
      let now = owner.world.now
      #expect(!owner.deadlines.contains { $0 < now }, "seed \(seed)")
    }
    #expect(owner.noticed.allSatisfy { $0.key == $0.value }, "seed \(seed)")
    #expect(!owner.noticed.isEmpty)
  }
}
