import Glibc
import SluiceClient
import SluiceCommand

struct SubCommand: Command {
  enum Printing {
    case standardOutput(OutputFormat)
    case command(String)
  }

  /// The file for records; nil for standard output.
  let output: FilePath?
  let topic: String
  /// Whether the topic is a pattern.
  let isPattern: Bool
  let start: SubscriptionPlan.Start
  let filter: RecordFilter
  /// Nil without a cursor.
  let cursor: SubscriptionPlan.Cursor?
  /// Nil for the topic's setting.
  let lag: SubscriptionPlan.Lag?
  let prefetch: SubscriptionPlan.Prefetch
  let printing: Printing
  let demand: DemandRule
  /// The number of records after which the command ends.
  let count: UInt64?
  /// The time after which the command ends.
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
          "Where to begin: replay, with the records that the topic replays; new, with the next record; earliest; last:N, N records "
          + "before the end; offset:K; time:2026-02-03T04:05:06Z; time:-10m, ten minutes ago; time:2026-02-03, when that day began in UTC.",
        standard: "replay",
        choices: starts),
      CommandOption(
        "demand", value: "N",
        help:
          "Request N records at a time, and the next N when they are printed; or 'unlimited'. Without it, enough "
          + "to keep the output busy.", choices: ["unlimited"]),
    ] + FilterOptions.options + CursorOptions.options + [
      CommandOption(
        "count", letter: "n", value: "N",
        help: "End after N records; 0 only checks that the topic exists."),
      CommandOption("for", value: "TIME", help: "End after this time: 30s, 5m."),
      CommandOption("until-live", help: "End after the replay, before new records."),
      CommandOption(
        "raw", help: "Print payloads without separators, and without escapes even on a terminal."),
      CommandOption(
        "frames", help: "Print the length in front of each payload: 4 bytes, little-endian."),
      CommandOption("json", help: "Print an object a line: offset, topic, time, key, headers, payload."),
      CommandOption(
        "headers",
        help:
          "Print headers, as NAME=VALUE, and a tab in front of each payload: --format '{headers}\\t{payload}'."
      ),
      CommandOption(
        "format", value: "TEXT",
        help:
          "Print a line of this format: {offset} {payload} {key} {topic} {time} {size} {headers} {header:NAME} "
          + "{deliveries} are parts of the record, and \\t is a tab."),
      CommandOption(
        "output", letter: "o", value: "FILE",
        help: "Write records to FILE, which is overwritten, instead of standard output.",
        takesBytes: true),
      CommandOption(
        "exec", value: "COMMAND",
        help:
          "Run a shell command for each record, one after the other, with the payload on its standard input and "
          + "SLUICE_TOPIC, SLUICE_OFFSET, SLUICE_TIME, SLUICE_KEY and SLUICE_KEY_BASE64 in its environment. A command that fails ends the program; "
          + "with --ack explicit, its record is retried instead, or rejected if the exit status is 65."
      ),
      CommandOption(
        "lag", value: "WHAT",
        help: "When the topic drops records before they were requested: skip (and print how many), or fail.",
        standard: "the topic's setting", choices: ["skip", "fail"]),
      CommandOption(
        "prefetch", value: "N", help: "Let the client request N records in advance.",
        standard: "0"),
      TopicStatement.option,
    ] + GroupChoice.options + [
      CommandOption("quiet", letter: "q", help: "Print nothing about the connection.")
    ] + Persistence.options,
    details: """
      Prints each payload on a line of standard output until the topic ends. If the topic doesn't exist, the command reports that and waits for it; with --until-live \
      or --count 0 it fails. A payload with line breaks prints several lines: --frames and --json keep records apart, --raw prints exact bytes. On a terminal, control \
      characters in payloads, keys and headers are printed as escapes such as \\u001b, unless --raw is given; a pipe or a file gets the bytes unchanged.

      TOPIC may be a pattern, for all topics that match now or later: * matches one token, a last > one or more. Quote it for the shell. The demand is for all topics \
      together, and they take turns. --format and --json print the topic of a record. When a topic ends or is deleted, the command reports that and continues.

      Records are printed at once, and more are requested only after that: a reader that stops blocks only this subscriber. With --demand unlimited, it must not stop \
      for longer than the broker's keepalive.

      \(FilterOptions.details)

      For a command of --exec, SLUICE_KEY has the bytes of the key; a key with a zero byte is only in SLUICE_KEY_BASE64, which has every key. Neither is set for a \
      record without a key.

      With --cursor, every record is printed at least once, even if the program is restarted: the cursor moves only after a record was printed. One subscriber uses a \
      cursor at a time: the last one. See sluice cursor.

      \(Persistence.details) Each record is printed once; a topic that was recreated meanwhile is printed from its beginning.
      """,
    examples: [
      "Replay the topic, then print new records.": "sluice sub words",
      "Print the last ten records with their offsets, and end.":
        "sluice sub words --from last:10 --until-live --format '{offset} {payload}'",
      "Print new records as JSON, for another program.":
        "sluice sub orders.eu --from new --json | jq .payload",
      "Print several topics, including later ones.": "sluice sub 'orders.*' --format '{topic} {payload}'",
      "Print new orders from Europe.": "sluice sub orders --key-prefix eu. --header kind=new",
      "Save a topic in a file.": "sluice sub orders --json --until-live -o orders.json",
      "Print all records since the last run.": "sluice sub orders.eu --cursor billing --until-live",
      "Print a source that runs while it has subscribers, with its last two records.":
        "sluice sub ticks --as shared:2",
      "Run a worker that handles one record at a time.": "sluice sub jobs --exec ./work.sh",
      "Run one of several workers; a job that fails three times goes to a dead-letter topic.":
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
        "--as is for one topic; leave it out for a pattern, and create a group's topic with sluice topic create"
      )
    }
    if cursor != nil, isPattern || group != nil {
      throw UsageError(
        "--cursor is for one subscriber of one topic; leave it out for a pattern or a group")
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
    // A mistyped name must not create a topic. Stated settings may.
    plan.ifMissing = settings == nil || endsWithReplay || count == 0 ? .fail : .create
    return plan
  }

  /// The starts that are a single word.
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
      // The word may be right, and its value missing.
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
        "--frames: a terminal can't show lengths; use a pipe, a file with -o, or --json"
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
