import SluiceClient
import SluiceCommand

/// `sluice top`
struct TopCommand: Command {
  let interval: Duration
  /// How many tables; nil for no end.
  let count: UInt64?
  let asJSON: Bool

  static let page = CommandPage(
    "sluice top", summary: "watch the topics: rates, subscribers, demand, who holds up whom",
    options: [
      CommandOption("interval", value: "TIME", help: "The time between two looks.", standard: "1s"),
      CommandOption("count", value: "N", help: "End after N tables."),
      CommandOption("once", help: "Print one table and end: --count 1."),
      CommandOption("json", help: "Print an object a line and topic, every time."),
    ],
    details: [
      """
      The busiest topics come first. Rates are of the time since the look before, in records a second; of subscribers and producers, the first hundred \
      of a topic count.
      """,
      """
      HELD UP BY names the subscriber whose limit stops the topic's producers: since when, pauses of up to a second included; with which limit; and for which share of the \
      last minute a producer had no demand because of it.
      """,
      "Fills the screen of a terminal, until Ctrl-C; prints one table behind the other to anything else.",
    ],
    examples: [
      .init("What is going on?", "sluice top"),
      .init("Who holds up producers?", "sluice top --once --json | jq 'select(.holding_ms > 0)'"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "count", "once")
    interval = try arguments.value("interval", TimeSpan.parse) ?? .seconds(1)
    guard interval >= .milliseconds(10) else { throw UsageError("--interval: 10ms is the shortest") }
    count = arguments.has("once") ? 1 : try arguments.value("count", Values.count(in: 1...UInt64.max))
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in Watching(self, run, client).begin() }
  }
}
