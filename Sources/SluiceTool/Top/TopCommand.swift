import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

struct TopCommand: Command {
  let interval: Duration
  /// How many tables to print; nil for no limit.
  let count: UInt64?
  let asJSON: Bool
  let showsHidden: Bool

  static let page = CommandPage(
    "sluice top", summary: "watch topics: rates, subscribers, demand, blocked producers",
    options: [
      CommandOption("interval", value: "TIME", help: "The time between samples.", standard: "1s"),
      CommandOption("count", letter: "n", value: "N", help: "End after N tables."),
      CommandOption("once", help: "Print one table and end: --count 1."),
      HiddenTopics.option,
      CommandOption("json", help: "Print an object for each topic and sample, one a line."),
    ],
    details: """
      Topics with blocked producers come first, then those whose oldest record has waited for 10 s or longer, then the busiest. Rates are records per second \
      since the previous sample, of up to a hundred subscribers and a hundred producers of a topic.

      BLOCKED BY names the subscriber that blocks the topic's producers: for how long, including pauses of up to a second; by which limit; and the share of the \
      last minute in which a producer had no demand because of it. In parentheses is how many producers are blocked.

      LAG is the backlog, in records, of the subscriber, durable cursor or group that is furthest behind. BEHIND is the age of the oldest record in a backlog. \
      Both are measured for at most 200 topics: first those that the filter selects, then those with clients, then durable ones, then others with records. \
      For other topics they are ? (null in JSON), and the title shows how many topics were measured.

      On a terminal, it fills the screen: q quits, the arrow keys, Page Up and Page Down select a topic, Enter shows it, s changes the order (S backwards), \
      / filters by name. Above the topics are the broker's most urgent problems, for clients with the permission admin on >. NO_COLOR turns colors off. \
      Columns that don't fit are left out, the least important first. Elsewhere, it prints a table for each sample until Ctrl-C.
      """,
    examples: [
      "Watch all topics.": "sluice top",
      "The worst topics, once.": "sluice top --once | head -n 12",
      "Which subscribers block producers?": "sluice top --once --json | jq 'select(.holding_ms > 0)'",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "count", "once")
    interval = try arguments.value("interval", TimeSpan.parse) ?? .seconds(1)
    guard interval >= .milliseconds(10) else {
      throw UsageError("--interval is too short; write at least 10ms")
    }
    count = arguments.has("once") ? 1 : try arguments.value("count", Values.count(in: 1...UInt64.max))
    asJSON = arguments.has("json")
    showsHidden = arguments.has("all")
  }

  func start(_ run: Run) {
    run.connect { client in Watching(self, run, client).begin() }
  }
}

/// One run of `sluice top`: requests all topics, then details of those with attached clients or records, and shows a table.
// Unchecked: used on the loop only.
final class Watching: @unchecked Sendable {
  /// The most topics whose details are requested in a sample.
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
  /// The node's commits and their total time at the last sample, and their mean time between the last two samples, in microseconds.
  private var commits: (count: UInt64, time: UInt64) = (0, 0)
  private var commitLatency: UInt64?
  private var problems: [BrokerInfo.Problem] = []
  /// Whether to request problems: there is a screen for them, and the client has the permission.
  private var asksForProblems: Bool
  private let hasColours = Screen.hasColours
  /// Whether the screen was closed: an answer in the same turn isn't shown.
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
    // Without the permission or a cluster, the title has no node.
    client.cluster { [self] result in
      if let info = try? result.get() { note(info) }
      if !isOver { takeSample() }
    }
  }

  /// The most shards of a cluster whose commit times are requested with each sample.
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
        // The client lacks the permission, or the broker doesn't know the request.
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

  /// Requests the details of topics that are in use or may have lagging cursors, all at once.
  private func ask(_ sample: TopSample) {
    // Producers that wait for the store aren't attached to their durable topics.
    let inUse = sample.topics.filter { $0.subscriptions + $0.publications > 0 }
    let unused = sample.topics.filter { $0.subscriptions + $0.publications == 0 }
    let stored = unused.filter { $0.storage == .durable }
    // Cursors and groups of topics in memory can also lag without a client.
    let kept = unused.filter { $0.storage != .durable && $0.records > 0 }
    let all = inUse + stored + kept
    // The opened topic comes first.
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
        // A topic that can't be shown was deleted meanwhile.
        if case .success(let info) = result { answers.sample.details[topic.topic] = info }
        answers.outstanding -= 1
        if answers.outstanding == 0 { show(answers.sample) }
      }
    }
  }

  // Unchecked: used only on the loop, on which the client answers.
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

  /// Returns whether the command continues.
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
