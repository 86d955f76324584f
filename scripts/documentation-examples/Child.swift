import Glibc

/// A process with its own process group, whose output goes to files.
final class Child {
  let id: pid_t
  let output: String
  let errors: String
  private var status: Int32?

  /// Starts a program. The first argument is looked up in the PATH of the environment given.
  init(
    _ arguments: [String], directory: String, environment: [String: String], output: String, errors: String
  ) throws {
    self.output = output
    self.errors = errors
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let flags = O_WRONLY | O_CREAT | O_APPEND
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, flags, 0o600)
    if errors == output {
      posix_spawn_file_actions_adddup2(&actions, 1, 2)
    } else {
      posix_spawn_file_actions_addopen(&actions, 2, errors, flags, 0o600)
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    // `env` looks the program up in the child's PATH, and changes the directory.
    let command = ["/usr/bin/env", "-C", directory] + arguments
    var argv = command.map { strdup($0) } + [nil]
    var envp = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var id: pid_t = 0
    let code = posix_spawn(&id, command[0], &actions, &attributes, &argv, &envp)
    guard code == 0 else {
      throw Trouble("\(arguments[0]) can't be started: \(String(cString: strerror(code)))")
    }
    self.id = id
  }

  /// The exit code, or 128 plus the signal if a signal ended the program; nil while it runs.
  func exitCode() -> Int32? {
    if let status { return status }
    var raw: Int32 = 0
    guard waitpid(id, &raw, WNOHANG) == id else { return nil }
    let signal = raw & 0x7f
    status = signal == 0 ? (raw >> 8) & 0xff : 128 + signal
    return status
  }

  /// Waits until the condition holds, the program has ended, or the timeout has passed. Returns whether the condition holds.
  func wait(seconds: Double, until condition: () -> Bool) -> Bool {
    let end = Clock.now + seconds
    while true {
      let hasEnded = exitCode() != nil
      if condition() { return true }
      if hasEnded || Clock.now > end { return false }
      usleep(10_000)
    }
  }

  /// The exit code, or nil when the program hasn't ended in time.
  func waitForEnd(seconds: Double) -> Int32? {
    _ = wait(seconds: seconds) { exitCode() != nil }
    return exitCode()
  }

  /// Ends the program and all processes that it started.
  func kill(_ signal: Int32 = SIGKILL) {
    _ = Glibc.kill(-id, signal)
    if signal == SIGKILL { _ = waitForEnd(seconds: 60) }
  }
}

enum Clock {
  /// Seconds.
  static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// An error that prevents the script itself from working, as opposed to a block that fails.
struct Trouble: Error {
  var message: String

  init(_ message: String) {
    self.message = message
  }
}
