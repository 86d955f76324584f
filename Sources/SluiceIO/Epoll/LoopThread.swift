import CLinux
import Glibc
import Synchronization

/// The thread of a loop: started once, joined by whoever comes first.
struct LoopThread: ~Copyable {
  private let handle = Mutex<pthread_t?>(nil)

  func start(name: String, _ body: @escaping @Sendable () -> Void) throws(IOError) {
    let (thread, code) = Threads.create(name: name, body)
    guard let thread else { throw IOError(action: "start thread \(name)", code: code) }
    handle.withLock { $0 = thread }
  }

  deinit {
    // Nobody waited for it: the system may forget it when it ends.
    handle.withLock { if let thread = $0 { pthread_detach(thread) } }
  }

  /// Waits for the thread's end. Whoever calls while another is waiting waits too.
  func join() {
    handle.withLock { handle in
      guard let thread = handle else { return }
      pthread_join(thread, nil)
      handle = nil
    }
  }
}

/// Threads that run a closure. They take no signals: those are for `ProcessSignals`.
enum Threads {
  private final class Body {
    let name: String
    let run: @Sendable () -> Void

    init(name: String, run: @escaping @Sendable () -> Void) {
      self.name = name
      self.run = run
    }
  }

  /// Returns the thread, to be joined or detached, or the system's error number.
  static func create(name: String, _ body: @escaping @Sendable () -> Void) -> (pthread_t?, Int32) {
    // A thread inherits the mask of the one that makes it; it must not take a signal before it could block it itself.
    var all = sigset_t()
    var previous = sigset_t()
    unsafe sigfillset(&all)
    unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }

    let context = unsafe Unmanaged.passRetained(Body(name: name, run: body))
    var thread = pthread_t()
    let code = unsafe pthread_create(
      &thread, nil,
      { context in
        let body = unsafe Unmanaged<Body>.fromOpaque(context!).takeRetainedValue()
        // The kernel keeps 15 bytes of a thread's name.
        unsafe pthread_setname_np(pthread_self(), String(decoding: body.name.utf8.prefix(15), as: UTF8.self))
        body.run()
        return nil
      }, unsafe context.toOpaque())
    if code == 0 { return (thread, 0) }
    unsafe context.release()
    return (nil, code)
  }

  /// Returns 0, or the system's error number.
  static func detach(name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
    let (thread, code) = create(name: name, body)
    if let thread { pthread_detach(thread) }
    return code
  }
}

extension EpollLoop {
  /// Makes a loop and a thread that runs it. End it with `stop()` and `join()`.
  ///
  /// - Throws: when the system has no more descriptors or threads.
  public static func start(name: String) throws(IOError) -> EpollLoop {
    let loop = try EpollLoop(name: name)
    try loop.thread.start(name: name) { loop.run() }
    return loop
  }

  /// Waits until a loop made by `start(name:)` has ended. From any thread but the loop's.
  public func join() {
    precondition(!isCurrent, "a loop can't wait for its own end")
    thread.join()
  }
}

extension LoopGroup {
  /// Starts `count` loops, each with a thread of its own; one per core that this process may use if none is given.
  ///
  /// - Throws: when the system has no more descriptors or threads; loops already started are stopped again.
  public static func threads(count: Int = availableCores, name: String = "loop") throws(IOError) -> LoopGroup
  {
    precondition(count > 0, "a loop group needs at least one loop")
    var loops: [EpollLoop] = []
    for index in 0..<count {
      do throws(IOError) {
        loops.append(try EpollLoop.start(name: "\(name)-\(index)"))
      } catch {
        for loop in loops { loop.stop() }
        for loop in loops { loop.join() }
        throw error
      }
    }
    return LoopGroup(loops)
  }

  /// Stops those loops of the group that have threads, and waits for their end. From a thread that isn't one of them.
  public func stopThreads() {
    let threads = loops.compactMap { $0 as? EpollLoop }
    for loop in threads { loop.stop() }
    for loop in threads { loop.join() }
  }

  /// The number of cores that this process may run on.
  public static var availableCores: Int {
    var set = cpu_set_t()
    let size = MemoryLayout<cpu_set_t>.size
    guard unsafe sched_getaffinity(0, size, &set) == 0 else {
      return max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    }
    let bits = unsafe withUnsafeBytes(of: &set) { bytes in unsafe bytes.reduce(0) { $0 + $1.nonzeroBitCount }
    }
    return max(1, bits)
  }
}
