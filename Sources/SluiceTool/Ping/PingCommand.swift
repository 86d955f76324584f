import SluiceClient
import SluiceCommand
import SluiceIO

/// `sluice ping`
struct PingCommand: Command {
  let count: UInt64
  let interval: Duration
  let timeout: Duration
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice ping", summary: "measure round trips to the broker",
    options: [
      CommandOption("count", value: "N", help: "Round trips.", standard: "1"),
      CommandOption("interval", value: "TIME", help: "The time between two.", standard: "1s"),
      CommandOption("timeout", value: "TIME", help: "How long an answer may take.", standard: "5s"),
      CommandOption("quiet", help: "Print nothing; the exit code tells."),
    ],
    details: ["Ends with 0 when every ping was answered, with 1 otherwise: a health check."],
    examples: [
      .init("Is it there?", "sluice ping"),
      .init("How far away is it?", "sluice --server broker.example:7420 ping --count 10 --interval 200ms"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    count = try arguments.value("count", Values.count(in: 1...UInt64.max)) ?? 1
    interval = try arguments.value("interval", TimeSpan.parse) ?? .seconds(1)
    timeout = try arguments.value("timeout", TimeSpan.parse) ?? .seconds(5)
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    run.connect(timeout: timeout) { client in Pinging(self, run, client).begin() }
  }
}
