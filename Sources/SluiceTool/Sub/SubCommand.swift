import Glibc
import SluiceClient
import SluiceCommand

struct SubCommand: Command {
  enum Printing {
    case standardOutput(OutputFormat)
    case command(String)
  }

  /// The file that records go to; nil for standard output.
  let output: FilePath?
  let topic: String
  /// Whether the topic is a pattern.
  let isPattern: Bool
  let start: SubscriptionPlan.Start
  let filter: RecordFilter
  /// Nil without one.
  let cursor: SubscriptionPlan.Cursor?
  /// Nil for what the topic's settings say.
  let lag: SubscriptionPlan.Lag?
  let prefetch: SubscriptionPlan.Prefetch
  let printing: Printing
  let demand: DemandRule
  /// Ends after so many records.
  let count: UInt64?
  /// Ends after so much time.
  let time: Duration?
  let endsWithReplay: Bool
  let persistence: Persistence
  /// Nil without a group.
  let group: GroupChoice?
  /// The stated settings of the topic; nil for none.
  let settings: TopicSettings?

  static let page = CommandPage(
    "sluice sub", summary: "print the records of a topic, or of several", operands: [Operand("TOPIC")],
    options: [
      CommandOption(
        "from", letter: "f", value: "START",
        help:
          "Where to begin: replay, at what the topic keeps; new, at the next record; earliest; last:N, so many records "
          + "before the end; offset:K; time:2026-02-03T04:05:06Z; time:-10m, so long ago, or time:2026-02-03, when that day began in UTC.",
        standard: "replay",
        choices: starts),
      CommandOption(
        "demand", value: "N",
        help:
          "Request N records at a time, and more when they are printed; or 'unlimited'. Without it, as many are "
          + "requested as keep the output busy.", choices: ["unlimited"]),
    ] + FilterOptions.options + CursorOptions.options + [
      CommandOption(
        "count", letter: "n", value: "N",
        help: "End after N records; with 0 at once, if there is such a topic."),
      CommandOption("for", value: "TIME", help: "End after this time: 30s, 5m."),
      CommandOption("until-live", help: "End where replay ends and new records would follow."),
      CommandOption(
        "raw", help: "Print payloads with nothing between them, and on a terminal without escapes, too."),
      CommandOption(
        "frames", help: "Print the length of each payload in front of it: 4 bytes, little-endian."),
      CommandOption("json", help: "Print an object a line: offset, topic, time, key, headers, payload."),
      CommandOption(
        "headers",
        help:
          "Print the headers, NAME=VALUE, and a tab in front of each payload: --format '{headers}\\t{payload}'."
      ),
      CommandOption(
        "format", value: "TEXT",
        help:
          "Print a line made from TEXT, in which {offset} {payload} {key} {topic} {time} {size} {headers} "
          + "{header:NAME} {deliveries} stand for parts of the record, and \\t for a tab."),
      CommandOption(
        "output", letter: "o", value: "FILE",
        help: "Write records to FILE, which is emptied first, rather than to standard output.",
        takesBytes: true),
      CommandOption(
        "exec", value: "COMMAND",
        help:
          "Run a shell command for each record, one after the other, with the payload on its standard input and "
          + "SLUICE_TOPIC, SLUICE_OFFSET, SLUICE_TIME, SLUICE_KEY and SLUICE_KEY_BASE64 in its environment; the first that fails is the last, "
          + "unless the records are acknowledged: then the record is retried, or with exit status 65 rejected."
      ),
      CommandOption(
        "lag", value: "WHAT",
        help: "When the topic drops records before they were requested: skip, go on and say how many; fail.",
        standard: "as the topic says", choices: ["skip", "fail"]),
      CommandOption(
        "prefetch", value: "N", help: "Let the client ask N records ahead of what is requested.",
        standard: "0"),
      TopicStatement.option,
    ] + GroupChoice.options + [
      CommandOption("quiet", letter: "q", help: "Say nothing about the connection.")
    ] + Persistence.options,
    details: """
      Prints each payload on a line of standard output until the topic ends. A topic that doesn't exist isn't created: the command waits for it, and says so; \
      with --until-live or --count 0 it fails. A payload that has line breaks in it comes out as \
      several lines: --frames, --raw and --json keep records apart, or bytes exact. On a terminal, control characters in payloads, keys and headers are printed as escapes, \
      \\u001b, unless --raw is given; a pipe or a file gets the bytes as they are.

      TOPIC may be a pattern, which stands for all topics that match, those created later included: * is any one token, a last > one or \
      more; quote them from the shell. What is requested is for all of them together, and they take turns. --format and --json \
      tell which topic a record is of; topics that end, or are deleted, are noted, and the command goes on.

      Prints what comes at once, and requests more only when that is printed: a reader that stops holds up this subscriber and \
      no other. Only with --demand unlimited must it not stop for longer than the broker's keepalive.

      \(FilterOptions.details)

      A command of --exec gets the bytes of the key in SLUICE_KEY, unless there is a zero byte among them, which no variable can have: then SLUICE_KEY is not set. \
      SLUICE_KEY_BASE64 has every key. Neither is set for a record without a key.

      With --cursor every record is printed at least once, however often the program is started anew: the cursor stays behind what was printed and \
      passed on. A cursor is used by one subscriber at a time, the last; see sluice cursor.

      \(Persistence.details) Records are printed once; a topic that was started anew meanwhile is printed from its beginning.
      """,
    examples: [
      "Everything that is kept, then what comes.": "sluice sub words",
      "The last ten records, with their offsets, and no more.":
        "sluice sub words --from last:10 --until-live --format '{offset} {payload}'",
      "New records as JSON, for another program.": "sluice sub orders.eu --from new --json | jq .payload",
      "Several topics, and those that are yet to come.": "sluice sub 'orders.*' --format '{topic} {payload}'",
      "The new orders from Europe.": "sluice sub orders --key-prefix eu. --header kind=new",
      "A topic in a file.": "sluice sub orders --json --until-live -o orders.json",
      "What has come since the last time.": "sluice sub orders.eu --cursor billing --until-live",
      "The last two records of a source that runs while it has subscribers.":
        "sluice sub ticks --as shared:2",
      "A worker that takes one record at a time.": "sluice sub jobs --exec ./work.sh",
      "One of several workers that share the jobs; what fails three times is put aside.":
        "sluice sub jobs --group workers --ack explicit --deliveries 3 --dead-letters jobs.dead --exec ./work.sh",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    (topic, isPattern) = try TopicOperand.readPattern(arguments.operands[0])
    try arguments.allowOne(of: "raw", "frames", "json", "headers", "format", "exec")
    start = try arguments.value("from", Self.start) ?? .replay
    filter = try FilterOptions.filter(arguments)
    cursor = try CursorOptions.cursor(arguments)
    lag = try arguments.value("lag", Values.choice(["skip": .skip, "fail": .fail]))
    let ahead = try arguments.value("prefetch", Values.count(in: 0...1_000_000)) ?? 0
    prefetch = ahead == 0 ? .byRequest : .keepFull(Int(ahead))
    count = try arguments.value("count", Values.count(in: 0...UInt64(Int.max)))
    time = try arguments.value("for", TimeSpan.parse)
    persistence = try Persistence(arguments)
    endsWithReplay = arguments.has("until-live")
    group = try GroupChoice(arguments)
    settings = try TopicStatement.settings(arguments)
    if settings != nil, isPattern || group != nil {
      throw UsageError(
        "--as is about one topic; leave it out for patterns, and create a group's topic before")
    }
    if cursor != nil, isPattern || group != nil {
      throw UsageError(
        "--cursor is a place in one topic, for one subscriber; leave it out for patterns and groups")
    }
    try arguments.allowOne(of: "exec", "output")
    output = arguments.path("output")
    if let command = arguments.text("exec") {
      printing = .command(command)
    } else if let template = try arguments.value(
      "format", { text throws(ValueError) in try RecordTemplate(parsing: text) })
    {
      printing = .standardOutput(.template(template))
    } else if arguments.has("headers") {
      printing = .standardOutput(.template(.headersAndPayload))
    } else {
      printing = .standardOutput(
        arguments.has("raw")
          ? .raw : arguments.has("frames") ? .frames : arguments.has("json") ? .json(RecordJSON()) : .lines)
    }
    let requested = try arguments.value("demand", Values.countOrUnlimited(in: 1...UInt64.max))
    switch (requested, printing) {
    case (UInt64.max?, _): demand = .unlimited
    case (let count?, _): demand = .rounds(of: Int(clamping: count))
    case (nil, .command): demand = .rounds(of: 1)
    case (nil, .standardOutput): demand = .window
    }
  }

  var plan: SubscriptionPlan {
    var plan = SubscriptionPlan(
      topic, settings: settings, from: start, where: filter, cursor: cursor, lag: lag, prefetch: prefetch)
    plan.isPattern = isPattern
    // A mistyped name must not create a topic. Stated settings are there to create one.
    plan.ifMissing = settings == nil || endsWithReplay || count == 0 ? .fail : .create
    return plan
  }

  /// Those that are a word alone.
  static let starts = ["replay", "new", "earliest"]

  /// `replay`, `last:10`, `time:-10m` and the like.
  static func start(_ text: String) throws(ValueError) -> SubscriptionPlan.Start {
    let (word, value) = Values.word(text)
    switch (word, value) {
    case ("replay", nil): return .replay
    case ("new", nil): return .new
    case ("earliest", nil): return .earliest
    case ("last", let count?): return .last(try Values.count()(count))
    case ("offset", let offset?): return .offset(try Values.count()(offset))
    case ("time", let time?) where time.hasPrefix("-"):
      return .time(
        Timestamp(
          millisecondsSince1970: WallTime.now - (try TimeSpan.milliseconds(String(time.dropFirst())))))
    case ("time", let time?): return .time(Timestamp(millisecondsSince1970: try WallTime.parse(time)))
    default:
      // The word may be right, and what is behind it missing.
      let near = Spelling.nearest(to: word, in: starts + ["last", "offset", "time"])
      if let near, near != word {
        let value = value.map { ":\($0)" } ?? (starts.contains(near) ? "" : ":N")
        throw ValueError("'\(text)' isn't a start; did you mean '\(near)\(value)'?")
      }
      throw ValueError(
        "'\(text)' isn't a start; it can be replay, new, earliest, last:N, offset:K, time:2026-02-03T04:05:06Z or time:-10m"
      )
    }
  }

  func start(_ run: Run) {
    if case .standardOutput(.frames) = printing, output == nil, ProgramOutput.isTerminal {
      return run.finish(
        .usage,
        "--frames: lengths are bytes that a terminal can't show; send them to a pipe or with -o to a file, or use --json"
      )
    }
    var descriptor: Int32?
    if let output {
      let opened = output.open(O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode: 0o666)
      guard opened >= 0 else { return run.finish(.failure, "cannot open \(output): \(Descriptor.reason())") }
      descriptor = opened
    }
    run.connect(persistence) { [descriptor] client in
      Subscribing(self, run, client, writingTo: descriptor).begin()
    }
  }
}
