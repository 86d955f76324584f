import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO

/// One `sluice ping` at work.
// Unchecked: used on the loop only.
final class Pinging: @unchecked Sendable {
  private let command: PingCommand
  private let run: Run
  private let client: Client
  private var times: [Duration] = []
  /// Whether it was interrupted: an answer that comes in the same turn isn't told behind the summary.
  private var isOver = false

  init(_ command: PingCommand, _ run: Run, _ client: Client) {
    self.command = command
    self.run = run
    self.client = client
  }

  func begin() {
    run.interrupted = { [self] in
      isOver = true
      summarise()
      run.finish(.interrupted)
    }
    ping()
  }

  private func ping() {
    let deadline = run.loop.schedule(after: command.timeout) { [run, command] in
      run.finish(.failure, "\(run.server) didn't answer within \(TimeSpan.exact(command.timeout))")
    }
    client.ping { [self] result in
      run.loop.cancel(deadline)
      switch result {
      case .success(let time): answered(time)
      case .failure(let error): run.fail(error)
      }
    }
  }

  private func answered(_ time: Duration) {
    if isOver { return }
    times.append(time)
    say("\(run.server) (\(client.broker.software)): \(TimeSpan.rounded(time))")
    guard UInt64(times.count) < command.count else {
      summarise()
      return run.finish(.success)
    }
    _ = run.loop.schedule(after: command.interval) { [self] in ping() }
  }

  private func summarise() {
    guard times.count > 1, let least = times.min(), let most = times.max() else { return }
    let mean = times.reduce(.zero, +) / times.count
    say(
      "\(times.count) round trips: least \(TimeSpan.rounded(least)), mean \(TimeSpan.rounded(mean)), most \(TimeSpan.rounded(most))"
    )
  }

  private func say(_ line: String) {
    if !command.isQuiet { Descriptor.write(line + "\n", to: STDOUT_FILENO) }
  }
}
