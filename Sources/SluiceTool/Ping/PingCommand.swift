import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

struct PingCommand: Command {
  let count: UInt64
  let interval: Duration
  let timeout: Duration
  let isQuiet: Bool
  /// Whether it only checks that a broker answers.
  let probesOnly: Bool

  static let page = CommandPage(
    "sluice ping", summary: "measure round trips to the broker",
    options: [
      CommandOption("count", letter: "n", value: "N", help: "How many round trips.", standard: "1"),
      CommandOption("interval", value: "TIME", help: "The time between round trips.", standard: "1s"),
      CommandOption("timeout", value: "TIME", help: "How long an answer may take.", standard: "5s"),
      CommandOption(
        "alive",
        help:
          "Only check that a broker answers: without credentials, with TLS if the broker requires it, and with any certificate."
      ),
      CommandOption("quiet", letter: "q", help: "Print nothing; only set the exit code."),
    ],
    details: """
      Ends with 0 if every ping was answered, otherwise with 1, for health checks. With --alive it ends with 0 as soon as one of the servers answers as a \
      broker, even if it would refuse this client.
      """,
    examples: [
      "Does the broker answer?": "sluice ping",
      "Does it answer, even if it would refuse this client?": "sluice ping --alive --quiet --timeout 3s",
      "Measure ten round trips.": "sluice --server broker.example:7420 ping --count 10 --interval 200ms",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    count = try arguments.value("count", Values.count(in: 1...UInt64.max)) ?? 1
    interval = try arguments.value("interval", TimeSpan.parse) ?? .seconds(1)
    timeout = try arguments.value("timeout", TimeSpan.parse) ?? .seconds(5)
    isQuiet = arguments.has("quiet")
    probesOnly = arguments.has("alive")
    try arguments.allowOne(of: "alive", "count")
    try arguments.allowOne(of: "alive", "interval")
  }

  func start(_ run: Run) {
    guard probesOnly else {
      return run.connect(timeout: timeout) { client in Pinging(self, run, client).begin() }
    }
    probe(run.access.servers[...], run)
  }

  private func probe(_ servers: ArraySlice<SocketAddress>, _ run: Run) {
    guard let server = servers.first else { return }
    let probe = BrokerProbe(server, over: run.network, run.access.tls, on: run.loop, timeout: timeout) {
      failure in
      if failure == nil {
        return run.print(isQuiet ? "" : "\(server): a broker answers\n")
      }
      if servers.count > 1 { return self.probe(servers.dropFirst(), run) }
      run.finish(.failure, failure)
    }
    probe.start()
  }
}

/// One run of `sluice ping`.
// Unchecked: used on the loop only.
final class Pinging: @unchecked Sendable {
  private let command: PingCommand
  private let run: Run
  private let client: Client
  private var times: [Duration] = []
  /// Whether it was interrupted: an answer in the same turn isn't printed after the summary.
  private var isOver = false

  init(_ command: PingCommand, _ run: Run, _ client: Client) {
    self.command = command
    self.run = run
    self.client = client
  }

  func begin() {
    run.interrupted = { [self] in
      isOver = true
      summarise(.interrupted)
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
    guard say("\(run.server) (\(client.broker.software)): \(TimeSpan.rounded(time))") else { return }
    guard UInt64(times.count) < command.count else { return summarise(.success) }
    _ = run.loop.schedule(after: command.interval) { [self] in ping() }
  }

  /// Prints the summary of several pings, and ends the run.
  private func summarise(_ code: ExitCode) {
    guard times.count > 1, let least = times.min(), let most = times.max() else { return run.finish(code) }
    let mean = times.reduce(.zero, +) / times.count
    let isWritten = say(
      "\(times.count) round trips: min \(TimeSpan.rounded(least)), mean \(TimeSpan.rounded(mean)), max \(TimeSpan.rounded(most))"
    )
    if isWritten { run.finish(code) }
  }

  /// Returns false if the line can't be written, which ends the run.
  private func say(_ line: String) -> Bool {
    command.isQuiet || run.write(ShownText.line(line) + "\n")
  }
}
