import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

struct TopCommand: Command {
  let interval: Duration
  /// How many tables; nil for no end.
  let count: UInt64?
  let asJSON: Bool
  let showsHidden: Bool

  static let page = CommandPage(
    "sluice top", summary: "watch the topics: rates, subscribers, demand, waiting producers",
    options: [
      CommandOption("interval", value: "TIME", help: "The time between two samples.", standard: "1s"),
      CommandOption("count", letter: "n", value: "N", help: "End after N tables."),
      CommandOption("once", help: "Print one table and end: --count 1."),
      HiddenTopics.option, CommandOption("json", help: "Print an object a line and topic, every time."),
    ],
    details: """
      Topics that are held up come first, then those whose oldest record waits for 10 s or longer, then the busiest. Rates are of the time since the sample before, in records a second; of subscribers and producers, the first hundred \
      of a topic count.

      HELD UP BY names the subscriber whose limit stops the topic's producers: since when, pauses of up to a second included; with which limit; and for which share of the \
      last minute a producer had no demand because of it.

      LAG is how many records the subscriber, durable cursor or group has yet to get that is furthest behind, and BEHIND the age of the oldest record that one of them has yet \
      to take. Both are of at most 200 topics: those that the filter selects first, then those with clients, then durable ones, then others with records. Of the others, ? stands \
      for them, null in JSON, and the title says of how many topics they are known.

      Fills the screen of a terminal: q ends it, the arrows and Page Up and Page Down select a topic, Enter shows it, \
      s changes the order (S backwards), / filters by name. Above the topics are the most urgent problems that the broker has found, for clients with the right to administer \
      every topic. Colours obey NO_COLOR. To anything else it prints one table behind the other, until Ctrl-C. \
      Columns that don't fit a terminal are left out, the least important ones first.
      """,
    examples: [
      "What is going on?": "sluice top",
      "One table, of which the worst topics are shown.": "sluice top --once | head -n 12",
      "Which subscribers hold up producers?": "sluice top --once --json | jq 'select(.holding_ms > 0)'",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "count", "once")
    interval = try arguments.value("interval", TimeSpan.parse) ?? .seconds(1)
    guard interval >= .milliseconds(10) else { throw UsageError("--interval: 10ms is the shortest") }
    count = arguments.has("once") ? 1 : try arguments.value("count", Values.count(in: 1...UInt64.max))
    asJSON = arguments.has("json")
    showsHidden = arguments.has("all")
  }

  func start(_ run: Run) {
    run.connect { client in Watching(self, run, client).begin() }
  }
}

/// One `sluice top` at work: asks for all topics, then for details of those with attached clients or records, and shows a table.
// Unchecked: used on the loop only.
final class Watching: @unchecked Sendable {
  /// The most topics whose details are asked for in a sample.
  private static let detailed = 200

  private let command: TopCommand
  private let run: Run
  private let client: Client
  private let screen: Screen?
  private var board = TopBoard()
  private var samples: UInt64 = 0
  private var state = TopState()
  private var rows: [TopRow] = []
  private var details: [String: TopicInfo] = [:]
  private var node: String?
  /// The node's commits and their time at the last sample, and how long one took between the last two, in microseconds.
  private var commits: (count: UInt64, time: UInt64) = (0, 0)
  private var commitLatency: UInt64?
  private var problems: [BrokerInfo.Problem] = []
  /// Whether the client may ask for problems, and there is a screen for them.
  private var asksForProblems: Bool
  private let hasColours = Screen.hasColours
  /// Whether the screen was closed: an answer in the same turn isn't shown any more.
  private var isOver = false

  init(_ command: TopCommand, _ run: Run, _ client: Client) {
    self.command = command
    self.run = run
    self.client = client
    screen = command.asJSON || command.count == 1 ? nil : Screen(STDOUT_FILENO)
    asksForProblems = screen != nil
  }

  func begin() {
    screen?.open()
    screen?.readKeys(from: STDIN_FILENO, on: run.loop) { [unowned self] in press($0) }
    run.interrupted = { [self] in finish { run.finish(.interrupted) } }
    // Without the permission, or a cluster, the title is without a node.
    client.cluster { [self] result in
      if let info = try? result.get() { note(info) }
      if !isOver { takeSample() }
    }
  }

  /// Shards of a larger cluster are too many to be asked for with each sample.
  private static let mostShards = 1_024
  private var asksForCommits = false

  private func note(_ info: ClusterInfo) {
    node = info.name
    asksForCommits = info.shardCount <= Self.mostShards
    let (count, time) = (info["commits"] ?? 0, info["commit_microseconds"] ?? 0)
    if count > commits.count, time >= commits.time {
      commitLatency = (time - commits.time) / (count - commits.count)
    }
    commits = (count, time)
  }

  private func press(_ keys: [TopKey]) {
    guard let screen, !isOver else { return }
    for key in keys { state.press(key, rows, page: screen.size.height - TopScreen.frame) }
    if state.isOver { return finish { run.finish(.success) } }
    _ = print(rows)
  }

  private func finish(_ conclusion: () -> Void) {
    isOver = true
    screen?.close()
    conclusion()
  }

  private func takeSample() {
    if asksForProblems {
      client.brokerInfo { [self] result in
        switch result {
        case .success(let info): problems = info.problems
        // Without the permission, and at a broker that doesn't know the request.
        case .failure(let error):
          asksForProblems = error.code != .permissionDenied && error.code != .unsupported
        }
      }
    }
    if asksForCommits {
      client.cluster { [self] result in if let info = try? result.get() { note(info) } }
    }
    client.topics { [self] result in
      switch result {
      case .success(let topics):
        let shown = topics.filter { command.showsHidden || !HiddenTopics.contains($0.topic) }
        ask(TopSample(time: run.loop.now, topics: shown))
      case .failure(let error): finish { run.fail(error) }
      }
    }
  }

  /// Asks about the topics that are in use, or may have cursors that lag, all at once.
  private func ask(_ sample: TopSample) {
    // Publishers that wait for the store aren't attached to their durable topics.
    let inUse = sample.topics.filter { $0.subscriptions + $0.publications > 0 }
    let unused = sample.topics.filter { $0.subscriptions + $0.publications == 0 }
    let stored = unused.filter { $0.storage == .durable }
    // Cursors and groups lag behind topics in memory, too, without a client.
    let kept = unused.filter { $0.storage != .durable && $0.records > 0 }
    let all = inUse + stored + kept
    // What is looked at comes first.
    let opened = sample.topics.filter { $0.topic == state.opened }
    let others = all.filter { $0.topic != state.opened }
    let ordered =
      opened + others.filter { state.selects($0.topic) } + others.filter { !state.selects($0.topic) }
    let used = ordered.prefix(Self.detailed)
    var sample = sample
    sample.unasked = Set(ordered.dropFirst(Self.detailed).map(\.topic))
    guard !used.isEmpty else { return show(sample) }
    let answers = Answers(sample, outstanding: used.count)
    for topic in used {
      client.topicInfo(topic.topic) { [self] result in
        // One that can't be shown any more was deleted meanwhile.
        if case .success(let info) = result { answers.sample.details[topic.topic] = info }
        answers.outstanding -= 1
        if answers.outstanding == 0 { show(answers.sample) }
      }
    }
  }

  // @unchecked: belongs to the loop, on which the client answers.
  private final class Answers: @unchecked Sendable {
    var sample: TopSample
    var outstanding: Int

    init(_ sample: TopSample, outstanding: Int) {
      self.sample = sample
      self.outstanding = outstanding
    }
  }

  private func show(_ sample: TopSample) {
    if isOver { return }
    if let failure = client.failure { return finish { run.fail(failure) } }
    rows = board.take(sample)
    details = sample.details
    samples += 1
    // The first sample is the base of rates.
    if samples > 1 || screen != nil, !print(rows) { return }
    if let count = command.count, samples > count { return finish { run.finish(.success) } }
    _ = run.loop.schedule(after: command.interval) { [self] in takeSample() }
  }

  /// Returns whether it goes on.
  private func print(_ rows: [TopRow]) -> Bool {
    let title = TopTable.title(rows, server: "\(run.server)", node: node, commits: commitLatency)
    let failure: ProgramOutput.Failure?
    if let screen {
      failure = screen.show(
        TopScreen.lines(
          state, rows, problems,
          titles: [title] + TopTable.shortTitles(rows, node: node),
          detail: state.opened.flatMap { details[$0] },
          size: screen.size,
          hasColours: hasColours))
    } else if command.asJSON {
      failure = ProgramOutput.write(state.rows(of: rows).map(TopTable.line).joined())
    } else {
      let gap = samples > 2 ? "\n" : ""
      let text =
        Screen(STDOUT_FILENO).map {
          TopScreen.plain(
            rows, titles: [title] + TopTable.shortTitles(rows, node: node), width: $0.size.width)
        } ?? TopTable.render(state.rows(of: rows), title: title)
      failure = ProgramOutput.write(gap + text)
    }
    guard let ending = failure?.ending else { return true }
    finish { run.finish(ending.code, ending.complaint) }
    return false
  }
}
