import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO

/// Runs a shell command for every record, one after the other, with the payload on its standard input.
///
/// The command's environment has `SLUICE_TOPIC`, `SLUICE_OFFSET` and `SLUICE_TIME`; also `SLUICE_KEY` and `SLUICE_KEY_BASE64` for a record with a key, and
/// `SLUICE_DELIVERIES` for a record of a group.
// Unchecked: used on its loop; the thread runs only the work of `queue`.
final class CommandRunner: RecordSink, @unchecked Sendable {
  /// The bytes of payload that may wait before the loop blocks.
  private static let limit = 16 << 20

  var progress: (Result<Printed, SinkFailure>) -> Void = { _ in }
  var failure: SinkFailure? { nil }

  private let loop: EpollLoop
  private var queue: WorkQueue<Job>!

  private struct Job: Sendable {
    var record: TopicRecord
    var deliveries: Int?
  }

  init(_ command: String, loop: EpollLoop) {
    self.loop = loop
    queue = WorkQueue(limit: Self.limit) { job in
      let result = ShellCommand(command, job.record, deliveries: job.deliveries).run()
      let printed = Printed(records: 1, bytes: job.record.count)
      loop.execute { [weak self] in
        self?.progress(result.map { _ in printed })
      }
    }
  }

  func take(_ record: TopicRecord, deliveries: Int?) {
    queue.add(Job(record: record, deliveries: deliveries), weight: record.count + 64) { Self.isInterrupted }
  }

  func flush() -> Printed { .nothing }

  func abandon(_ done: @escaping @Sendable () -> Void) {
    queue.close { [loop] in loop.execute(done) }
  }
}

/// A shell command that runs once for a record.
struct ShellCommand {
  private let command: String
  private let record: TopicRecord
  private let deliveries: Int?

  init(_ command: String, _ record: TopicRecord, deliveries: Int? = nil) {
    self.command = command
    self.record = record
    self.deliveries = deliveries
  }

  /// Runs it and waits for its end. The command needn't read its input.
  func run() -> Result<Void, SinkFailure> {
    start(output: nil) { input in
      _ = unsafe record.withUnsafeBytes { unsafe Descriptor.writeAll($0, to: input.writing) }
      input.closeWriting()
    }
  }

  /// Runs it, waits for its end, and returns its standard output.
  func answer() -> Result<[UInt8], SinkFailure> {
    guard let output = Pipe() else { return .failure(failed(errno)) }
    var answer: [UInt8] = []
    return start(output: output) { input in answer = exchange(input, output) }.map { answer }
  }

  /// Starts it, calls `write`, which closes the writing end of its input, and waits for its end.
  ///
  /// - Parameter output: the pipe for its standard output; nil for the output of this program. Closed on failure.
  private func start(output: Pipe?, _ write: (Pipe) -> Void) -> Result<Void, SinkFailure> {
    guard let input = Pipe() else {
      let code = errno
      output?.closeWriting()
      output?.closeReading()
      return .failure(failed(code))
    }
    var child = pid_t()
    let code = spawn(&child, input: input.reading, output: output?.writing)
    input.closeReading()
    output?.closeWriting()
    guard code == 0 else {
      input.closeWriting()
      output?.closeReading()
      return .failure(failed(code))
    }
    write(input)
    return end(of: child)
  }

  /// Writes the payload and reads the output, whichever is ready.
  private func exchange(_ input: Pipe, _ output: Pipe) -> [UInt8] {
    _ = fcntl(input.writing, F_SETFL, O_NONBLOCK)
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    unsafe record.withUnsafeBytes { payload in
      var given = 0
      var isGiving = true
      while true {
        if isGiving, given == payload.count {
          input.closeWriting()
          isGiving = false
        }
        var waiting = [
          pollfd(fd: output.reading, events: Int16(POLLIN), revents: 0),
          pollfd(fd: input.writing, events: Int16(POLLOUT), revents: 0),
        ]
        if unsafe poll(&waiting, isGiving ? 2 : 1, -1) < 0, errno != EINTR { break }
        if isGiving, waiting[1].revents != 0 {
          let count = unsafe write(input.writing, payload.baseAddress! + given, payload.count - given)
          // A command may close its input early.
          if count >= 0 { given += count } else if errno != EAGAIN, errno != EINTR { given = payload.count }
        }
        guard waiting[0].revents != 0 else { continue }
        let count = unsafe read(output.reading, &buffer, buffer.count)
        if count > 0 { answer += buffer[..<count] } else if count == 0 || errno != EINTR { break }
      }
      if isGiving { input.closeWriting() }
    }
    output.closeReading()
    return answer
  }

  private func end(of child: pid_t) -> Result<Void, SinkFailure> {
    var status: Int32 = 0
    while unsafe waitpid(child, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    if signal != 0 {
      return .failure(.command("the command for \(place) was ended by signal \(signal)", status: nil))
    }
    let result = (status >> 8) & 0xFF
    guard result == 0 else {
      return .failure(.command("the command for \(place) ended with code \(result)", status: result))
    }
    return .success(())
  }

  private var place: String { "offset \(record.offset) of \(record.topic)" }

  private func failed(_ code: Int32) -> SinkFailure {
    .failed("cannot run the command: \(Descriptor.reason(code))")
  }

  private func spawn(_ child: inout pid_t, input: Int32, output: Int32?) -> Int32 {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    if let output { unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) }

    // Commands must not inherit the signals that this program blocks and ignores.
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    var ignored = sigset_t()
    unsafe sigemptyset(&ignored)
    unsafe sigaddset(&ignored, SIGPIPE)
    unsafe posix_spawnattr_setsigdefault(&attributes, &ignored)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let variables = RecordVariables.all(
      of: record, deliveries: deliveries, beside: Environment.all.map(\.bytes))
    return unsafe CStrings.with(["sh", "-c", command].map { Array($0.utf8) }) { arguments in
      unsafe CStrings.with(variables) { environment in
        unsafe posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environment)
      }
    }
  }
}

/// The two ends of a pipe. Both close on exec, since a command that inherited the writing end would never see the end of its input.
private struct Pipe {
  let reading: Int32
  let writing: Int32

  init?() {
    var ends: [Int32] = [0, 0]
    guard unsafe pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    (reading, writing) = (ends[0], ends[1])
  }

  func closeReading() { _ = close(reading) }

  func closeWriting() { _ = close(writing) }
}

/// The environment variables that describe a record to a command.
enum RecordVariables {
  private static let names = ["TOPIC", "OFFSET", "TIME", "DELIVERIES", "KEY", "KEY_BASE64"]

  /// The variables, as `NAME=VALUE`.
  ///
  /// - Parameter inherited: the variables of this program; those of the record replace them.
  static func all(of record: TopicRecord, deliveries: Int?, beside inherited: [[UInt8]]) -> [[UInt8]] {
    let replaced = names.map { Array("SLUICE_\($0)=".utf8) }
    var variables = inherited.filter { variable in !replaced.contains { variable.starts(with: $0) } }
    func add(_ name: String, _ value: some Sequence<UInt8>) {
      variables.append(Array("SLUICE_\(name)=".utf8) + value)
    }
    add("TOPIC", record.topic.utf8)
    add("OFFSET", "\(record.offset)".utf8)
    add("TIME", WallTime.format(record.time.millisecondsSince1970).utf8)
    if let deliveries { add("DELIVERIES", "\(deliveries)".utf8) }
    if let key = record.key {
      // A zero byte would cut the variable, and the rest would be a wrong key.
      if !key.contains(0) { add("KEY", key) }
      var base64: [UInt8] = []
      unsafe key.withUnsafeBytes { unsafe Base64.append($0, to: &base64) }
      add("KEY_BASE64", base64)
    }
    return variables
  }
}

/// Arrays of C strings.
private enum CStrings {
  /// - Parameter strings: bytes without zero bytes.
  static func with<Result>(
    _ strings: [[UInt8]], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    let copies =
      unsafe strings.map { string in
        unsafe (string + [0]).withUnsafeBytes { bytes in
          unsafe bytes.withMemoryRebound(to: CChar.self) { unsafe strdup($0.baseAddress!) }
        }
      } + [nil]
    defer { for index in unsafe copies.indices { unsafe free(copies[index]) } }
    return unsafe copies.withUnsafeBufferPointer { unsafe body($0.baseAddress!) }
  }
}
