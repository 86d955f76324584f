import Glibc
import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceIO

/// One run of the program: the main thread's loop, on which signals, the client and the command run, and the exit code.
// Unchecked: everything but the constants is used on the loop only.
final class Run: @unchecked Sendable {
  let loop: EpollLoop
  let network = SocketNetwork()
  let access: ClientAccess
  /// The server of the last connection.
  private(set) var server: SocketAddress

  /// The progress line; nil for none.
  var progress: ProgressLine?

  /// The reaction to Ctrl-C, which must call `finish` in the end. Nil to end at once.
  var interrupted: (() -> Void)?

  /// The silence after which the connection counts as lost; nil for the client's default.
  private let keepalive: Duration?
  private var clients: [Client] = []
  private var watches: [AnyCancellable] = []
  private var signals: ProcessSignals?
  private var wasInterrupted: ExitCode?
  private var result: ExitCode?

  /// - Throws: `UsageError` if the environment has an invalid value, or the system has no descriptors left.
  init(_ access: ClientAccess) throws(UsageError) {
    self.access = access
    server = access.servers[0]
    keepalive = try Self.wantedKeepalive()
    do {
      loop = try EpollLoop(name: "sluice")
    } catch {
      throw UsageError("cannot start: \(error)")
    }
  }

  private static func wantedKeepalive() throws(UsageError) -> Duration? {
    guard let text = Environment.value("SLUICE_KEEPALIVE"), !text.isEmpty else { return nil }
    do {
      return try TimeSpan.parse(text)
    } catch {
      throw UsageError("SLUICE_KEEPALIVE: \(error)")
    }
  }

  /// Runs the command until it finishes.
  func perform(_ command: any Command) throws(UsageError) -> ExitCode {
    do {
      signals = try ProcessSignals.deliver([.interrupt, .terminate], to: loop) { [self] in received($0) }
    } catch {
      throw UsageError("cannot start: \(error)")
    }
    nonisolated(unsafe) let command = command  // Used on the loop, which runs on this thread.
    loop.execute { [self] in unsafe command.start(self) }
    loop.run()
    return result ?? .failure
  }

  // MARK: On the loop

  /// Connects to the broker and calls `body`; ends the run if that fails.
  ///
  /// - Parameter persistence: the reaction to a lost connection.
  func connect(
    timeout: Duration = .seconds(10), _ persistence: Persistence = .off, _ body: @escaping (Client) -> Void
  ) {
    do throws(UsageError) {
      try access.checkTLS()
    } catch {
      return finish(.usage, error.description)
    }
    var options = ClientOptions()
    options.name = "sluice[\(getpid())]"
    options.connectTimeout = timeout
    if let keepalive {
      options.keepalive = keepalive
      options.connectTimeout = max(timeout, keepalive)
    }
    options.reconnect = persistence.policy
    access.apply(to: &options)
    nonisolated(unsafe) let body = body  // Passed in and called on the loop.
    let notice = persistence.policy?.includesFirst == true && !persistence.isQuiet ? noticeLater() : nil
    Client.connect(to: access.servers, options: options, network: network, loop: loop) { [self] result in
      if let notice { loop.cancel(notice) }
      if self.result != nil { return }
      switch result {
      case .success(let client):
        clients.append(client)
        watch(client, persistence)
        unsafe body(client)
      case .failure(let error):
        fail(error)
      }
    }
  }

  /// Notes after a second that there is no connection yet.
  private func noticeLater() -> TimerToken {
    loop.schedule(after: .seconds(1)) { [self] in
      if result == nil { note("no broker answers at \(server) yet; trying again") }
    }
  }

  /// Notes a lost connection, and the next one.
  private func watch(_ client: Client, _ persistence: Persistence) {
    var isLost = false
    watches.append(
      client.connectionState.sink { [self] state in
        if result != nil { return }
        switch state {
        case .connected(let address):
          server = address
          if isLost, !persistence.isQuiet { note("connected to \(address)") }
          isLost = false
        case .waiting(_, _, let cause):
          if !isLost, !persistence.isQuiet { note("\(cause); trying again") }
          isLost = true
        case .connecting, .closed: break
        }
      })
    var last = ""
    watches.append(
      client.unserved.sink { [self] error in
        // Many streams may have the same reason to wait.
        guard result == nil, !persistence.isQuiet, error.message != last else { return }
        last = error.message
        note("\(error)")
      })
  }

  /// Ends the run. The first call counts.
  func finish(_ code: ExitCode, _ complaint: String? = nil) {
    guard result == nil else { return }
    // The command doesn't know which signal has interrupted it.
    result = code == .success || code == .interrupted ? wasInterrupted ?? code : code
    progress?.end()
    if let complaint { Complaint.write(complaint, by: "sluice") }
    for client in clients { client.close() }
    // One turn later, so that closing can send its last frames.
    loop.execute { [loop] in loop.stop() }
  }

  /// Ends the run with the exit code and the message of a client's error.
  func fail(_ error: ClientError) {
    switch error.code {
    case .topicFailed, .producerLost: finish(.topicFailed, "the topic failed: \(error)")
    case .invalidTopic, .invalidAddress: finish(.usage, "\(error)")
    // The library's message doesn't name this program's option.
    case .insecureConnection: finish(.failure, "\(error) with --allow-plaintext-credentials")
    default: finish(.failure, "\(error)")
    }
  }

  /// Writes a message to standard error; the run continues.
  func note(_ message: String) {
    progress?.clear()
    Complaint.write(message, by: "sluice")
  }

  private func received(_ signal: ProcessSignal) {
    let code: ExitCode = signal == .interrupt ? .interrupted : .terminated
    // The second signal ends the program at once.
    guard wasInterrupted == nil else { _exit(code.rawValue) }
    wasInterrupted = code
    if let interrupted { interrupted() } else { finish(code) }
  }
}

extension Run {
  /// Ends the run with the result of a request: prints the value's text, or fails with the error.
  func report<Value>(_ result: Result<Value, ClientError>, _ text: (Value) -> String) {
    switch result {
    case .success(let value): print(text(value))
    case .failure(let error): fail(error)
    }
  }

  /// The same for a request about a topic: if it doesn't exist, the message suggests similar names.
  func report<Value>(
    _ result: Result<Value, ClientError>, of topic: String, _ client: Client, _ text: (Value) -> String
  ) {
    switch result {
    case .success(let value): print(text(value))
    case .failure(let error): fail(error, unknown: topic, client)
    }
  }

  /// Ends the run with a text on standard output. A closed pipe is no failure.
  func print(_ text: String) {
    if write(text) { finish(.success) }
  }

  /// Writes a text to standard output; ends the run if that fails.
  ///
  /// - Returns: whether the run continues.
  func write(_ text: String) -> Bool {
    progress?.clear()
    return goesOn(after: ProgramOutput.write(text))
  }

  /// Ends the run if standard output couldn't be written.
  func goesOn(after failure: ProgramOutput.Failure?) -> Bool {
    guard let ending = failure?.ending else { return true }
    finish(ending.code, ending.complaint)
    return false
  }
}

/// A command's reaction to a lost connection, and whether it reports it.
struct Persistence {
  /// Nil if the command ends.
  var policy: ReconnectPolicy?
  var isQuiet = false

  static let off = Persistence(policy: nil)

  /// How long it tries by default: long enough for a restart of the broker, short enough for scripts.
  private static let reconnectTimeout = Duration.seconds(60)

  static let options = [
    CommandOption(
      "reconnect",
      help:
        "Try forever to connect: at the start, and when the connection is lost. Without this option, a lost connection is retried for a minute."
    ),
    CommandOption("no-reconnect", help: "Fail when the connection is lost."),
  ]

  static let details = """
    When the connection is lost, the command connects again, to the next of its servers, and continues; it reports that on standard error. \
    It fails if it can't connect within a minute.
    """

  init(policy: ReconnectPolicy?) {
    self.policy = policy
  }

  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "reconnect", "no-reconnect")
    isQuiet = arguments.has("quiet")
    guard !arguments.has("no-reconnect") else { return }
    var policy = ReconnectPolicy()
    policy.maximumDelay = .seconds(5)
    // The first connection as well, for a program that is started before its broker.
    policy.includesFirst = arguments.has("reconnect")
    // A broker with full storage still answers, and its operator can make room.
    policy.limitsStorageWaits = false
    if !arguments.has("reconnect") { policy.giveUpAfter = Self.reconnectTimeout }
    self.policy = policy
  }
}
