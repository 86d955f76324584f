import Glibc
import SluiceBroker
import SluiceCommand
import SluiceIO
import Synchronization

/// The service manager that started this process, if one did: systemd with `Type=notify`, or what speaks as it does.
///
/// Sends the notices of sd_notify(3): lines `NAME=VALUE` in a datagram to the Unix socket that `NOTIFY_SOCKET` names, by a path or,
/// behind `@`, by a name in the kernel's abstract namespace. Without that variable there are no notices. A notice that can't be sent is logged, and
/// changes nothing else. From any thread; waits for a manager that is busy, a second at most.
struct ServiceManager: Sendable {
  private let socket: String?
  private let logger: Logger

  /// - Parameter environment: the value of a variable; nil when it isn't set.
  init(_ logger: Logger, environment: (String) -> String? = Environment.value) {
    socket = environment("NOTIFY_SOCKET").flatMap { $0.isEmpty ? nil : $0 }
    self.logger = logger
  }

  /// Tells the manager that the broker serves clients.
  func ready() {
    notify("READY=1")
  }

  /// Tells the manager that an orderly stop has begun.
  func stopping() {
    notify("STOPPING=1")
  }

  /// Tells a manager with a watchdog that the broker works.
  func alive() {
    notify("WATCHDOG=1")
  }

  /// Tells the manager of the begin and the end of a reload.
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
    // A name in the abstract namespace ends where its length says, not with a zero.
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

/// Tells a service manager that watches over this process that it works: systemd with `WatchdogSec=`, as sd_watchdog_enabled(3) describes it.
///
/// It works while each of the broker's loops answers. Threads that wait for the disk, or verify passwords, aren't asked: they may take their time. The loop
/// that asks and notifies has to work for that, too. A manager that hears nothing for too long takes the process for dead, and starts another one.
final class Watchdog: Sendable {
  private let broker: Broker
  private let manager: ServiceManager
  private let loop: EpollLoop
  private let interval: Duration
  private let round = Mutex(LivenessRound())

  /// - Parameters:
  ///   - interval: how often to ask and notify.
  ///   - loop: where that is done, which isn't the broker's.
  init(_ broker: Broker, notifying manager: ServiceManager, every interval: Duration, on loop: EpollLoop) {
    self.broker = broker
    self.manager = manager
    self.interval = interval
    self.loop = loop
  }

  /// How often to notify: twice in the time after which the manager takes the process for dead. Nil where no manager watches this process.
  ///
  /// - Parameter environment: the value of a variable; nil when it isn't set.
  static func interval(
    of process: pid_t = getpid(), environment: (String) -> String? = Environment.value
  ) -> Duration? {
    guard let microseconds = environment("WATCHDOG_USEC").flatMap({ Int64($0) }), microseconds > 0 else {
      return nil
    }
    // The variables may be for the process that started this one.
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

/// One round of questions to all loops.
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
