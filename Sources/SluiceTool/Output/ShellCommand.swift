import Glibc
import SluiceClient
import SluiceCommand

/// A command of the shell, run once for a record.
struct ShellCommand {
  private let command: String
  private let record: TopicRecord

  init(_ command: String, _ record: TopicRecord) {
    self.command = command
    self.record = record
  }

  /// Runs it and waits for its end. A command that doesn't read its input is as welcome as one that does.
  func run() -> Result<Void, SinkFailure> {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return .failure(failed(errno)) }
    // The command gets its end under another number; with a copy of ours it would never see the end of its input.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var child = pid_t()
    let code = spawn(&child, input: ends[0])
    _ = close(ends[0])
    guard code == 0 else {
      _ = close(ends[1])
      return .failure(failed(code))
    }
    _ = record.withUnsafeBytes { Descriptor.writeAll($0, to: ends[1]) }
    _ = close(ends[1])
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    let signal = status & 0x7F
    if signal != 0 { return .failure(.failed("the command was ended by signal \(signal) at \(place)")) }
    let result = (status >> 8) & 0xFF
    guard result == 0 else { return .failure(.failed("the command ended with \(result) at \(place)")) }
    return .success(())
  }

  private var place: String { "offset \(record.offset) of \(record.topic)" }

  private func failed(_ code: Int32) -> SinkFailure {
    .failed("cannot run the command: \(String(cString: strerror(code)))")
  }

  private func spawn(_ child: inout pid_t, input: Int32) -> Int32 {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)

    // This program blocks and ignores signals that commands should have.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var ignored = sigset_t()
    sigemptyset(&ignored)
    sigaddset(&ignored, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &ignored)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var variables = Environment.all.filter { !$0.hasPrefix("SLUICE_KEY=") }
    variables.append("SLUICE_TOPIC=\(record.topic)")
    variables.append("SLUICE_OFFSET=\(record.offset)")
    variables.append("SLUICE_TIME=\(WallTime.format(record.time))")
    if let key = record.keyString { variables.append("SLUICE_KEY=\(key)") }
    return CStrings.with(["sh", "-c", command]) { arguments in
      CStrings.with(variables) { environment in
        posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environment)
      }
    }
  }
}

/// Arrays of strings as C wants them.
private enum CStrings {
  static func with<Result>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    let copies = strings.map { strdup($0) } + [nil]
    defer { for copy in copies { free(copy) } }
    return copies.withUnsafeBufferPointer { body($0.baseAddress!) }
  }
}
