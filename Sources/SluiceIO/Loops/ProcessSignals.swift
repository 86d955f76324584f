import CLinux
import Glibc

/// A signal that asks something of the process as a whole.
public enum ProcessSignal: Hashable, Sendable, CaseIterable {
  /// `SIGHUP`
  case hangUp
  /// `SIGINT`: Ctrl-C.
  case interrupt
  /// `SIGTERM`
  case terminate
  /// `SIGUSR1`
  case user1

  public var number: Int32 {
    switch self {
    case .hangUp: SIGHUP
    case .interrupt: SIGINT
    case .terminate: SIGTERM
    case .user1: SIGUSR1
    }
  }
}

/// Delivers signals to a loop, as events like any other.
///
/// Call `ProcessSignals.block(_:)` first thing in `main`, before there are threads: a signal is delivered to any thread
/// that doesn't block it, and then does what it always did. Threads inherit the mask.
public final class ProcessSignals: Sendable {
  private let source: SignalSource

  /// Keeps `signals` from ending the process, in this thread and in threads that it starts later; they wait until
  /// `deliver` picks them up.
  public static func block(_ signals: Set<ProcessSignal>) {
    var mask = Self.mask(of: signals)
    unsafe pthread_sigmask(SIG_BLOCK, &mask, nil)
  }

  /// Makes writing to a closed pipe an error instead of the end of the process. Sockets of this module never raise
  /// `SIGPIPE`; standard output does.
  public static func ignoreBrokenPipes() {
    signal(SIGPIPE, SIG_IGN)
  }

  /// Calls `handler` on `loop` for every one of `signals` that arrives, until `stop()`. Blocks them in the calling thread.
  ///
  /// - Throws: when the system has no more descriptors.
  public static func deliver(
    _ signals: Set<ProcessSignal>, to loop: EpollLoop,
    handler: @escaping @Sendable (ProcessSignal) -> Void
  ) throws(IOError) -> ProcessSignals {
    block(signals)
    var mask = Self.mask(of: signals)
    let descriptor = unsafe signalfd(-1, &mask, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    guard descriptor >= 0 else { throw IOError(action: "receive signals", code: errno) }
    let source = SignalSource(loop: loop, descriptor: descriptor, handler: handler)
    loop.execute { try? loop.register(source, for: .readable) }
    return ProcessSignals(source: source)
  }

  private init(source: SignalSource) {
    self.source = source
  }

  /// No more signals are delivered; they stay blocked. From any thread.
  public func stop() {
    source.loop.execute { [source] in source.closeDescriptor() }
  }

  private static func mask(of signals: Set<ProcessSignal>) -> sigset_t {
    var mask = sigset_t()
    unsafe sigemptyset(&mask)
    for signal in signals { unsafe sigaddset(&mask, signal.number) }
    return mask
  }
}

/// Unchecked: used on its loop only, after it was made.
private final class SignalSource: EventSource, @unchecked Sendable {
  private let handler: @Sendable (ProcessSignal) -> Void

  init(loop: EpollLoop, descriptor: Int32, handler: @escaping @Sendable (ProcessSignal) -> Void) {
    self.handler = handler
    super.init(loop: loop, descriptor: descriptor)
  }

  override func ready(_ events: EpollEvents) {
    var information = signalfd_siginfo()
    let size = MemoryLayout<signalfd_siginfo>.size
    while descriptor >= 0, unsafe Glibc.read(descriptor, &information, size) == size {
      let number = Int32(bitPattern: information.ssi_signo)
      if let signal = ProcessSignal.allCases.first(where: { $0.number == number }) { handler(signal) }
    }
  }
}
