import Glibc
import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

/// The service manager that started this process, if any: systemd with `Type=notify`, or a compatible program.
///
/// Sends the notices of sd_notify(3): lines `NAME=VALUE` in a datagram to the Unix socket in `NOTIFY_SOCKET`. That is a path or, with a leading `@`, a name
/// in the kernel's abstract namespace. Without the variable, nothing is sent. A notice that can't be sent is only logged. From any thread; waits for a busy
/// manager for at most a second.
struct ServiceManager: Sendable {
  private let socket: String?
  private let logger: Logger

  /// - Parameter environment: the value of a variable; nil when it isn't set.
  init(_ logger: Logger, environment: (String) -> String? = Environment.value) {
    socket = environment("NOTIFY_SOCKET").flatMap { $0.isEmpty ? nil : $0 }
    self.logger = logger
  }

  /// Notifies the manager that the broker serves clients.
  func ready() {
    notify("READY=1")
  }

  /// Notifies the manager that an orderly stop has begun.
  func stopping() {
    notify("STOPPING=1")
  }

  /// Notifies a manager with a watchdog that the broker works.
  func alive() {
    notify("WATCHDOG=1")
  }

  /// Runs `reload`, and notifies the manager of its begin and end.
  func whileReloading(_ reload: () -> Void) {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    notify("RELOADING=1\nMONOTONIC_USEC=\(Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)")
    reload()
    ready()
  }

  private func notify(_ state: String) {
    guard let socket else { return }
    let code = Self.send(state, to: socket)
    guard code != 0 else { return }
    logger.log(
      .warning, "the service manager can't be notified",
      [
        "state": .text(String(state.prefix { $0 != "\n" })), "socket": .text(socket),
        "cause": .text(Descriptor.reason(code)),
      ])
  }

  /// Returns 0, or the error number.
  private static func send(_ state: String, to name: String) -> Int32 {
    guard name.hasPrefix("/") || name.hasPrefix("@") else { return EAFNOSUPPORT }
    var address = sockaddr_un()
    guard name.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return ENAMETOOLONG }
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { path in
      unsafe path.copyBytes(from: name.utf8)
      if name.hasPrefix("@") { unsafe path[0] = 0 }
    }
    // The length ends a name in the abstract namespace, without a zero byte.
    let length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + name.utf8.count)

    let descriptor = Glibc.socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    var sendTimeout = timeval(tv_sec: 1, tv_usec: 0)
    unsafe setsockopt(
      descriptor, SOL_SOCKET, SO_SNDTIMEO, &sendTimeout, socklen_t(MemoryLayout<timeval>.size))
    let bytes = Array(state.utf8)
    let sent = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), pointer, length)
      }
    }
    return sent == bytes.count ? 0 : errno
  }
}

/// Notifies a service manager with a watchdog regularly that the broker works: systemd with `WatchdogSec=`, as sd_watchdog_enabled(3) describes it.
///
/// The broker works while each of its loops answers, and the loop that sends the notices runs. Threads that wait for the disk or verify passwords aren't
/// checked, since their work may take long. Without notices for too long, the manager restarts the process.
final class Watchdog: Sendable {
  private let broker: Broker
  private let manager: ServiceManager
  private let loop: EpollLoop
  private let interval: Duration
  private let round = Mutex(LivenessRound())

  /// - Parameters:
  ///   - interval: the interval of checks and notices.
  ///   - loop: the loop that runs the checks, which must not be one of the broker's.
  init(_ broker: Broker, notifying manager: ServiceManager, every interval: Duration, on loop: EpollLoop) {
    self.broker = broker
    self.manager = manager
    self.interval = interval
    self.loop = loop
  }

  /// The interval of notices: half of the manager's timeout. Nil if no manager watches this process.
  ///
  /// - Parameter environment: the value of a variable; nil when it isn't set.
  static func interval(
    of process: pid_t = getpid(), environment: (String) -> String? = Environment.value
  ) -> Duration? {
    guard let microseconds = environment("WATCHDOG_USEC").flatMap({ Int64($0) }), microseconds > 0 else {
      return nil
    }
    // The variables may have been set for the process that started this one.
    if let watched = environment("WATCHDOG_PID"), !watched.isEmpty, pid_t(watched) != process { return nil }
    return max(.microseconds(microseconds) / 2, .milliseconds(1))
  }

  /// Checks now, and then regularly. From any thread.
  func start() {
    loop.execute { [self] in ask() }
  }

  private func ask() {
    _ = loop.schedule(after: interval) { [weak self] in self?.ask() }
    // Skips this check while a loop hasn't answered the last one.
    guard round.withLock({ $0.begin(broker.loopCount) }) else { return }
    broker.askLoops { [weak self] number in
      guard let self, round.withLock({ $0.answered(by: number) }) else { return }
      // A notice may have to wait, which isn't allowed on the broker's loops.
      loop.execute { [manager] in manager.alive() }
    }
  }
}

/// One check of all loops.
struct LivenessRound: Hashable {
  private var missing: Set<Int> = []

  /// Begins a check of loops 0 up to `count`.
  ///
  /// - Returns: false if some loops haven't answered the last check.
  mutating func begin(_ count: Int) -> Bool {
    guard missing.isEmpty else { return false }
    missing = Set(0..<count)
    return true
  }

  /// - Returns: whether this was the last missing answer.
  mutating func answered(by loop: Int) -> Bool {
    missing.remove(loop) != nil && missing.isEmpty
  }
}
