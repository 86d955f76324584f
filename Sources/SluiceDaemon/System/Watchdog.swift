import Glibc
import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

/// Tells a service manager that watches over this process that it works: systemd with `WatchdogSec=`, as sd_watchdog_enabled(3) describes it.
///
/// It works while each of the broker's loops answers. Threads that wait for the disk, or verify passwords, aren't asked: they may take their time. The loop
/// that asks and tells has to work for that, too. Who hears nothing for too long takes the process for dead, and starts another one.
final class Watchdog: Sendable {
  private let broker: Broker
  private let manager: ServiceManager
  private let loop: EpollLoop
  private let interval: Duration
  private let round = Mutex(LivenessRound())

  /// - Parameters:
  ///   - interval: how often to ask and tell.
  ///   - loop: where that is done, which isn't the broker's.
  init(_ broker: Broker, tells manager: ServiceManager, every interval: Duration, on loop: EpollLoop) {
    self.broker = broker
    self.manager = manager
    self.interval = interval
    self.loop = loop
  }

  /// How often to tell: twice in the time after which the manager takes the process for dead. Nil where nobody watches this process.
  ///
  /// - Parameter environment: the value of a variable; nil when it isn't set.
  static func interval(
    of process: pid_t = getpid(), environment: (String) -> String? = Environment.value
  ) -> Duration? {
    guard let microseconds = environment("WATCHDOG_USEC").flatMap({ Int64($0) }), microseconds > 0 else {
      return nil
    }
    // It may be meant for the process that started this one.
    if let watched = environment("WATCHDOG_PID"), !watched.isEmpty, pid_t(watched) != process { return nil }
    return max(.microseconds(microseconds) / 2, .milliseconds(1))
  }

  /// Asks now, and from now on. From any thread.
  func start() {
    loop.execute { [self] in ask() }
  }

  private func ask() {
    _ = loop.schedule(after: interval) { [weak self] in self?.ask() }
    // While one loop hasn't answered it is too late, or too early, to ask again.
    guard round.withLock({ $0.begin(broker.loopCount) }) else { return }
    broker.askLoops { [weak self] number in
      guard let self, round.withLock({ $0.answered(by: number) }) else { return }
      // Telling may have to wait, which the broker's loops don't.
      loop.execute { [manager] in manager.alive() }
    }
  }
}

/// Whether all of several loops have answered since they were asked.
struct LivenessRound: Hashable {
  private var missing: Set<Int> = []

  /// Asks loops 0 up to `count`.
  ///
  /// - Returns: false when some haven't answered yet what they were asked last.
  mutating func begin(_ count: Int) -> Bool {
    guard missing.isEmpty else { return false }
    missing = Set(0..<count)
    return true
  }

  /// - Returns: whether this was the last one that was missing.
  mutating func answered(by loop: Int) -> Bool {
    missing.remove(loop) != nil && missing.isEmpty
  }
}
