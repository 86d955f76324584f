import Glibc
import SluiceSession

/// A server that is started for one run, and stopped after it.
final class LaunchedServer {
  let process: ServerProcess
  let port: UInt16

  /// Starts a command, and waits until it listens. `{port}` in the command is replaced by a free port, and `{self}` by this program's path. Its standard
  /// output is dropped; its standard error is that of this process.
  ///
  /// - Throws: BenchError when it can't be started, or doesn't listen within ten seconds.
  init(command: String) throws {
    let probe = try Socket.listen(port: 0)
    let port = probe.localPort
    probe.close()
    let words = command.split(separator: " ").map {
      $0 == "{self}" ? CommandLine.arguments[0] : Self.replacing("{port}", in: String($0), by: "\(port)")
    }
    guard !words.isEmpty else { throw UsageError("--launch needs a command") }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var pid: pid_t = 0
    let result = posix_spawnp(&pid, words[0], &actions, nil, &arguments, environ)
    posix_spawn_file_actions_destroy(&actions)
    guard result == 0 else {
      throw BenchError("cannot start \(words[0]): \(String(cString: strerror(result)))")
    }
    process = ServerProcess(pid: pid)
    self.port = port
    try waitUntilListening()
  }

  /// Stops the server: SIGTERM, and SIGKILL if it still runs after five seconds.
  func stop() {
    kill(process.pid, SIGTERM)
    for _ in 0..<500 {
      if waitpid(process.pid, nil, WNOHANG) != 0 { return }
      usleep(10_000)
    }
    kill(process.pid, SIGKILL)
    waitpid(process.pid, nil, 0)
  }

  private func waitUntilListening() throws {
    for _ in 0..<1000 {
      if let socket = try? Socket.connect(port: port) {
        socket.close()
        return
      }
      if waitpid(process.pid, nil, WNOHANG) != 0 { throw BenchError("the server ended before it listened") }
      usleep(10_000)
    }
    stop()
    throw BenchError("no process listens on 127.0.0.1:\(port) after ten seconds")
  }

  private static func replacing(_ placeholder: String, in text: String, by value: String) -> String {
    guard let range = text.firstRange(of: placeholder) else { return text }
    return text[..<range.lowerBound] + value + text[range.upperBound...]
  }
}
