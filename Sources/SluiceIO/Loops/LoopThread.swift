import CLinux
import Glibc
import Synchronization

/// The thread of a loop: started once, joined by the first caller of ``join()``.
struct LoopThread: ~Copyable {
  private let handle = Mutex<pthread_t?>(nil)

  func start(name: String, _ body: @escaping @Sendable () -> Void) throws(IOError) {
    let (thread, code) = Threads.create(name: name, body)
    guard let thread else { throw IOError(action: "start thread \(name)", code: code) }
    handle.withLock { $0 = thread }
  }

  deinit {
    // Never joined: the system may forget it when it ends.
    handle.withLock { if let thread = $0 { pthread_detach(thread) } }
  }

  /// Waits for the thread's end. Concurrent callers wait, too.
  func join() {
    handle.withLock { handle in
      guard let thread = handle else { return }
      pthread_join(thread, nil)
      handle = nil
    }
  }
}

/// Threads that run a closure. They take no signals: those are for `ProcessSignals`.
package enum Threads {
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
    // A thread inherits the signal mask of its creator; it must not take a signal before it could block it itself.
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

  /// Runs a closure on a thread that nothing waits for. Returns 0, or the system's error number.
  package static func detach(name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
    let (thread, code) = create(name: name, body)
    if let thread { pthread_detach(thread) }
    return code
  }
}
