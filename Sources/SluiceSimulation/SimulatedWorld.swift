import SluiceIO

/// Loops, a network and a clock that run in one thread, each step of which follows from a seed.
///
/// ```swift
/// let world = SimulatedWorld(seed: seed, loops: 2)
/// let broker = try Broker(BrokerConfiguration(), network: world.network, group: world.group)
/// #expect(world.run { world.network.connections.count == 1 })
/// world.network.connections[0].cut()
/// world.run(for: .seconds(30))
/// ```
///
/// The code under test must draw nothing from outside either: no other clock or random numbers, and no order of a
/// dictionary or of object identities. Then the same seed gives the same run, and `trace` shows it.
///
/// A world is used by one thread at a time. Its objects may outlive it, but are inactive then.
public final class SimulatedWorld {
  public let seed: UInt64
  public let network: SimulatedNetwork
  public private(set) var loops: [SimulatedLoop] = []

  private let scheduler: SimulatedScheduler
  private let settings = SimulatedSettings()

  /// - Parameter loops: how many loops to begin with; more can be made at any time.
  public init(seed: UInt64, loops count: Int = 1, conditions: SimulatedConditions = SimulatedConditions()) {
    self.seed = seed
    scheduler = SimulatedScheduler(seed: seed)
    settings.conditions = conditions
    network = SimulatedNetwork(scheduler: scheduler, settings: settings)
    for _ in 0..<count { makeLoop() }
  }

  deinit {
    scheduler.trace = nil
    for loop in loops { loop.stop() }
    network.tearDown()
    scheduler.removeAll()
  }

  /// Makes another loop: a process or thread of its own in the simulation.
  @discardableResult
  public func makeLoop(name: String? = nil) -> SimulatedLoop {
    let loop = SimulatedLoop(
      name: name ?? "loop \(loops.count)", scheduler: scheduler, settings: settings)
    loops.append(loop)
    planStall(of: loop)
    return loop
  }

  /// All loops made so far.
  public var group: LoopGroup { LoopGroup(loops) }

  /// How loops and connections behave.
  public var conditions: SimulatedConditions {
    get { settings.conditions }
    set { settings.conditions = newValue }
  }

  /// Random faults: for connections and loops that are created later, and the present loops' stalls.
  public var faults: SimulatedFaults {
    get { settings.faults }
    set {
      let hadStalls = settings.faults.stallEvery != nil
      settings.faults = newValue
      if !hadStalls { for loop in loops { planStall(of: loop) } }
    }
  }

  /// Receives a line for whatever happens, with the time in seconds before it.
  public var trace: ((String) -> Void)? {
    get { scheduler.trace }
    set { scheduler.trace = newValue }
  }

  /// Numbers for the test's own choices; drawing from them is part of the run.
  public var random: SeededRandom {
    get { scheduler.random }
    set { scheduler.random = newValue }
  }

  // MARK: Time

  public var now: MonotonicTime { scheduler.now }

  /// The wall clock, in milliseconds since 1970: it follows `now`. Setting it makes it jump, as the real one may.
  public var wallClock: Int64 {
    get { settings.wallClock(at: now) }
    set { settings.wallClockStart += newValue - wallClock }
  }

  /// Makes the next thing happen. Returns false when nothing ever will.
  @discardableResult
  public func step() -> Bool { scheduler.step() }

  /// Lets everything happen that is due in the next `duration`.
  public func run(for duration: Duration) {
    run(until: now + duration)
  }

  /// Lets everything happen that is due until `time`.
  public func run(until time: MonotonicTime) {
    while let next = scheduler.nextTime, next <= time { step() }
    scheduler.advance(to: time)
  }

  /// Lets things happen until `condition` holds.
  ///
  /// - Parameters:
  ///   - limit: how long, in the world's time.
  ///   - interval: how much of the world's time passes between two tests of the condition, at least; zero: it is tested after each thing that happens. A
  ///     condition that looks at much is tested less often.
  ///   - condition: what to wait for.
  /// - Returns: false when `limit` has passed, or nothing is left to happen, and the condition still doesn't hold.
  public func run(
    limit: Duration = .seconds(600), every interval: Duration = .zero, until condition: () -> Bool
  ) -> Bool {
    let end = now + limit
    var nextTest = now
    while true {
      if now >= nextTest {
        if condition() { return true }
        nextTest = now + interval
      }
      guard let next = scheduler.nextTime, next <= end else { return condition() }
      step()
    }
  }

  private func planStall(of loop: SimulatedLoop) {
    guard let mean = settings.faults.stallEvery else { return }
    let delay = scheduler.random.next(in: .nanoseconds(1)...mean * 2)
    scheduler.schedule(after: delay) { [weak self, unowned loop] in
      guard let self else { return }
      loop.stall(for: scheduler.random.next(in: settings.faults.stallLength))
      planStall(of: loop)
    }
  }
}
