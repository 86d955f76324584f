import Glibc
import Synchronization

/// A program that a test runs.
///
/// It ends with this object or with the tests' process, however that ends. Safe from any thread.
public final class ChildProcess: Sendable {
  public enum Input: Sendable {
    case nothing
    case bytes([UInt8])
    case file(String)
    /// The bytes written with `write(_:)`, until `closeInput()`.
    case open
  }

  public enum Output: Sendable {
    case captured
    case file(String)
    case nothing
    /// A pipe whose other end is closed immediately.
    case closedPipe
  }

  /// How the program ended.
  public enum Exit: Hashable, Sendable, CustomStringConvertible {
    case code(Int32)
    case signal(Int32)

    public var description: String {
      switch self {
      case .code(let code): "exit code \(code)"
      case .signal(let signal): "killed by signal \(signal)"
      }
    }
  }

  public let pid: pid_t
  /// The program and its arguments, for messages.
  public let name: String
  public let standardOutput: CapturedOutput
  public let standardError: CapturedOutput
  private let input: Mutex<Int32?>
  private let exit = Mutex<Exit?>(nil)
  private let guardian: Guardian

  /// Starts the program at `path`.
  ///
  /// - Parameter environment: variables in addition to the tests' own.
  public init(
    _ path: String, _ arguments: [String] = [], environment: [String: String] = [:],
    input: Input = .nothing, output: Output = .captured
  ) throws {
    name = String(path.split(separator: "/").last ?? "") + " " + arguments.joined(separator: " ")
    _ = Self.ignoresBrokenPipes
    let plumbing = Plumbing()
    defer { plumbing.closeChildEnds() }
    var source: Int32?
    switch input {
    case .nothing: try plumbing.open("/dev/null", O_RDONLY, as: 0)
    case .file(let path): try plumbing.open(path, O_RDONLY, as: 0)
    case .bytes, .open: source = try plumbing.pipe(as: 0)
    }
    var sink: Int32?
    switch output {
    case .captured: sink = try plumbing.pipe(as: 1)
    case .file(let path): try plumbing.open(path, O_WRONLY | O_CREAT | O_TRUNC, as: 1)
    case .nothing: try plumbing.open("/dev/null", O_WRONLY, as: 1)
    case .closedPipe: close(try plumbing.pipe(as: 1))
    }
    let errors = try plumbing.pipe(as: 2)
    pid = try plumbing.spawn(path, arguments, environment)
    guardian = try Guardian(of: pid)
    standardOutput = CapturedOutput(sink)
    standardError = CapturedOutput(errors)
    self.input = Mutex(source)
    if case .bytes(let bytes) = input {
      _ = BackgroundThread { [self] in
        // The program may end before it has read everything.
        try? write(bytes)
        closeInput()
      }
    }
  }

  deinit {
    stop()
    closeInput()
  }

  /// A program that ends before it has read everything must not end the tests.
  private static let ignoresBrokenPipes: Void = {
    _ = Glibc.signal(SIGPIPE, SIG_IGN)
  }()

  // MARK: Communication

  /// Writes to its standard input.
  public func write(_ bytes: [UInt8]) throws {
    guard let descriptor = input.withLock({ $0 }) else { throw TestFailure("\(name) has no open input") }
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress! + written, bytes.count - written)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw TestFailure("write to \(name): error \(errno)") }
      written += count
    }
  }

  public func closeInput() {
    if let descriptor = input.withLock({ $0.take() }) { close(descriptor) }
  }

  public func signal(_ number: Int32) {
    // Under the lock, so that the process ID is still valid.
    exit.withLock { if $0 == nil { kill(pid, number) } }
  }

  // MARK: Its end

  /// How it ended; nil while it runs.
  public var currentExit: Exit? {
    exit.withLock { exit in
      if exit != nil { return exit }
      var status: Int32 = 0
      guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
      let signal = status & 0x7F
      exit = signal == 0 ? .code((status >> 8) & 0xFF) : .signal(signal)
      guardian.dismiss()
      return exit
    }
  }

  /// Waits until it has ended and its whole output is read.
  @discardableResult
  public func waitForExit(within seconds: Double = Deadline.patience) throws -> Exit {
    try eventually("the end of \(name); \(messages)", within: seconds) { currentExit != nil }
    try standardOutput.waitForEnd()
    try standardError.waitForEnd()
    return currentExit!
  }

  /// Kills it if it runs, and waits for its end.
  public func stop() {
    signal(SIGCONT)
    signal(SIGKILL)
    while currentExit == nil { pause(0.002) }
  }

  /// The last lines of its output, for failure messages.
  public var messages: String {
    "its standard error: \(standardError.text.suffix(2000)), output: \(standardOutput.text.suffix(500))"
  }
}

/// Kills a process if the tests' own process ends without ``dismiss()``.
private final class Guardian: Sendable {
  private let pid: pid_t
  private let line: Mutex<Int32?>

  init(of guarded: pid_t) throws {
    let plumbing = Plumbing()
    defer { plumbing.closeChildEnds() }
    line = Mutex(try plumbing.pipe(as: 0))
    pid = try plumbing.spawn("/bin/sh", ["-c", "read well || kill -KILL \(guarded)"], [:])
  }

  /// The guarded process has ended.
  func dismiss() {
    guard let descriptor = line.withLock({ $0.take() }) else { return }
    write(descriptor, "\n", 1)
    close(descriptor)
    waitpid(pid, nil, 0)
  }
}

/// The descriptors between this process and a child that it starts.
private final class Plumbing {
  /// No other process may start while descriptors without close-on-exec exist: it would inherit them.
  private static let gate = Mutex(())
  private var childEnds: [(descriptor: Int32, number: Int32)] = []

  func open(_ path: String, _ flags: Int32, as number: Int32) throws {
    let descriptor = Glibc.open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw TestFailure("open \(path): error \(errno)") }
    childEnds.append((descriptor, number))
  }

  /// Creates a pipe. Returns this process's end of it.
  func pipe(as number: Int32) throws -> Int32 {
    try Self.gate.withLock { _ in
      var ends: [Int32] = [0, 0]
      guard Glibc.pipe(&ends) == 0 else { throw TestFailure("pipe: error \(errno)") }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      if number == 0 {
        childEnds.append((ends[0], number))
        return ends[1]
      }
      childEnds.append((ends[1], number))
      return ends[0]
    }
  }

  func closeChildEnds() {
    for end in childEnds { close(end.descriptor) }
    childEnds = []
  }

  func spawn(_ path: String, _ arguments: [String], _ environment: [String: String]) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for end in childEnds { posix_spawn_file_actions_adddup2(&actions, end.descriptor, end.number) }
    // Close inherited descriptors, which would keep other tests' connections open.
    _ = Self.closeFrom?(&actions, 3)

    // Reset signals, because tests may have changed their own.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGPIPE, SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var variables = Self.environment.filter { entry in
      !environment.keys.contains { entry.hasPrefix($0 + "=") }
    }
    variables += environment.map { "\($0.key)=\($0.value)" }
    var pid: pid_t = 0
    let code = Self.withCStrings([path] + arguments) { arguments in
      Self.withCStrings(variables) { variables in
        Self.gate.withLock { _ in posix_spawn(&pid, path, &actions, &attributes, arguments, variables) }
      }
    }
    guard code == 0 else { throw TestFailure("start \(path): error \(code)") }
    return pid
  }

  private typealias CloseFrom =
    @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) ->
    Int32

  /// The overlay lacks this function; glibc provides it since version 2.34.
  private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
    unsafeBitCast($0, to: CloseFrom.self)
  }

  private static var environment: [String] {
    var entries: [String] = []
    var entry = environ
    while let text = entry.pointee {
      entries.append(String(cString: text))
      entry += 1
    }
    return entries
  }

  private static func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    var copies = strings.map { strdup($0) }
    copies.append(nil)
    defer { for copy in copies { free(copy) } }
    return copies.withUnsafeBufferPointer { body($0.baseAddress!) }
  }
}
