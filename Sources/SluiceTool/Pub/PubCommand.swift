import Glibc
import SluiceClient
import SluiceCommand
import SluiceWire

struct PubCommand: Command {
  /// The source of records.
  enum Source: Equatable {
    case messages([[UInt8]])
    case standardInput
    case file(FilePath)
  }

  enum Report {
    case summary
    case progress
    case nothing
  }

  let topic: String
  let source: Source
  let framing: Framing
  let notation: RecordNotation
  let key: [UInt8]?
  let headers: [Message.Header]
  /// The new trace of these records; nil for none.
  let newTrace: TraceContext?
  /// Records per second; nil for as fast as the broker grants.
  let rate: Double?
  let acknowledgement: TopicSubject.Acknowledgement
  /// How the topic ends after the last record; nil to leave it open.
  let ending: Ending?
  let report: Report
  let persistence: Persistence
  /// The stated settings of the topic; nil for none.
  let settings: TopicSettings?

  enum Ending: Equatable {
    case finished
    case failure(String)
  }

  static let page = CommandPage(
    "sluice pub", summary: "publish records to a topic",
    operands: [Operand("TOPIC"), Operand("MESSAGE", .repeated, takesBytes: true)],
    options: [
      CommandOption(
        "file", value: "FILE",
        help: "Read records from FILE instead of standard input; - is standard input.", takesBytes: true),
      CommandOption(
        "delimiter", value: "WHAT",
        help: "The end of a record in the input: newline, nul, or none for the whole input as one record.",
        standard: "newline", choices: ["newline", "nul", "none"]),
      CommandOption(
        "frames", help: "In the input, each record has its length in front: 4 bytes, little-endian."),
      CommandOption(
        "json",
        help:
          "Each line of the input is an object with payload, key and headers, as printed by sluice sub --json; offset, topic and time are ignored. headers may also be an object of names and texts."
      ),
      CommandOption(
        "key-separator", value: "TEXT",
        help: "Each record in the input is a key, TEXT, and the payload.", takesBytes: true),
      CommandOption("key", value: "KEY", help: "Publish every record with this key.", takesBytes: true),
      CommandOption(
        "header", value: "NAME=VALUE", help: "Publish every record with this header.", isRepeatable: true,
        takesBytes: true),
      CommandOption(
        "trace",
        help:
          "Add the header traceparent to every record: from TRACEPARENT and TRACESTATE in the environment, or for a new trace, which is printed on standard error."
      ),
      CommandOption("rate", value: "N", help: "Publish at most N records per second."),
      CommandOption(
        "ack", value: "WHEN",
        help:
          "When a record counts as published: none, when it is sent; received, when it is in the topic's "
          + "log; durable, when it is on disk.", standard: "received",
        choices: ["none", "received", "durable"]),
      TopicStatement.option,
      CommandOption("complete", help: "Complete the topic after the last record."),
      CommandOption("fail", value: "MESSAGE", help: "Fail the topic with MESSAGE after the last record."),
      CommandOption("progress", help: "Print progress every second."),
      CommandOption(
        "quiet", letter: "q", help: "Print no summary, and nothing about the connection."),
    ] + Persistence.options,
    details: """
      Publishes each MESSAGE as a record; without MESSAGE, each line of standard input, without its line break. The last line needs no line break. Bytes are \
      published unchanged.

      Reads only as much input as the broker lets it send, plus a bounded buffer. Ends with 0 only if every record is acknowledged.

      \(Persistence.details) Unacknowledged records are sent again, and published once. While the broker's storage is full or fails, the command reports that and \
      waits; with --no-reconnect it ends with 1.
      """,
    examples: [
      "Publish a record.": "sluice pub greetings hello",
      "Publish a record for each line, then complete the topic.":
        "sluice pub words --complete < /usr/share/dict/words",
      "Follow a log, with the host's name in each record.":
        "tail -F app.log | sluice pub logs.app --header host=$(hostname)",
      "Publish no faster than the slowest subscriber.": "sluice pub jobs --as back-pressured < jobs.txt",
      "Publish a whole file as one record.": "sluice pub images.cat --delimiter none --key cat < cat.jpg",
      "Copy a topic with any kind of payload.":
        "sluice sub a --until-live --frames | sluice pub b --frames",
      "Copy a topic with its keys and headers.": "sluice sub a --until-live --json | sluice pub b --json",
      "Publish lines like 'eu.42 shipped', with the first word as key.":
        "sluice pub orders --key-separator ' ' --file orders.txt",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    try arguments.allowOne(of: "frames", "delimiter")
    try arguments.allowOne(of: "json", "frames", "key-separator", "key")
    try arguments.allowOne(of: "json", "delimiter")
    try arguments.allowOne(of: "key-separator", "key")
    try arguments.allowOne(of: "complete", "fail")
    try arguments.allowOne(of: "progress", "quiet")
    let messages = arguments.operandArguments.dropFirst().map(\.bytes)
    if let file = arguments.path("file") {
      guard messages.isEmpty else { throw UsageError("give either --file or messages, not both") }
      source = file == "-" ? .standardInput : .file(file)
    } else {
      source = messages.isEmpty ? .standardInput : .messages(messages)
    }
    let delimiter = try arguments.value(
      "delimiter",
      Values.choice([
        "newline": Framing.delimited(UInt8(ascii: "\n")), "nul": .delimited(0), "none": .whole,
      ]))
    framing = arguments.has("frames") ? .lengthPrefixed : delimiter ?? .delimited(UInt8(ascii: "\n"))
    if case .messages = source, arguments.has("frames") || delimiter != nil {
      throw UsageError(
        "--\(arguments.has("frames") ? "frames" : "delimiter") is for records from an input; leave MESSAGE out"
      )
    }
    let separator = arguments.bytes("key-separator")
    if separator == [] { throw UsageError("--key-separator is empty; give the text between key and payload") }
    if case .messages = source, arguments.has("json") || separator != nil {
      throw UsageError(
        "--\(arguments.has("json") ? "json" : "key-separator") is for records from an input; leave MESSAGE out"
      )
    }
    notation = arguments.has("json") ? .json : separator.map { .keyed($0) } ?? .plain
    key = arguments.bytes("key")
    let trace = arguments.has("trace") ? try Self.trace() : nil
    newTrace = trace?.isNew == true ? trace?.context : nil
    headers = try arguments.values("header", bytes: HeaderText.parse) + (trace?.context.headers ?? [])
    rate = try arguments.value("rate", Values.count(in: 1...1_000_000_000)).map { Double($0) }
    acknowledgement =
      try arguments.value("ack", Values.choice(["none": .none, "received": .received, "durable": .durable]))
      ?? .received
    ending = arguments.text("fail").map { .failure($0) } ?? (arguments.has("complete") ? .finished : nil)
    persistence = try Persistence(arguments)
    settings = try TopicStatement.settings(arguments)
    report = arguments.has("quiet") ? .nothing : arguments.has("progress") ? .progress : .summary
  }

  /// The trace of the environment, in the variables of OpenTelemetry's tools, or a new one.
  private static func trace() throws(UsageError) -> (context: TraceContext, isNew: Bool) {
    guard let parent = Environment.value("TRACEPARENT"), !parent.isEmpty else {
      return (TraceContext(), true)
    }
    guard let context = TraceContext(traceparent: parent, tracestate: Environment.value("TRACESTATE") ?? "")
    else {
      throw UsageError(
        "TRACEPARENT is malformed: '\(parent)'; write it like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
      )
    }
    return (context, false)
  }

  /// A note about a message that may be meant as a file; nil for any other message.
  static func hint(_ messages: [[UInt8]]) -> String? {
    guard messages.count == 1, let message = messages.first else { return nil }
    if message == Array("-".utf8) {
      return "publishing '-' as the payload; to read standard input, leave MESSAGE out"
    }
    guard message.first == UInt8(ascii: "@"), message.count > 1, !message.contains(0) else { return nil }
    let file = FilePath(message.dropFirst())
    let descriptor = file.open(O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    close(descriptor)
    return "publishing '@\(file)' as the payload; to publish the file, use --file \(file)"
  }

  func start(_ run: Run) {
    if case .messages(let messages) = source, !persistence.isQuiet, let hint = Self.hint(messages) {
      run.note(hint)
    }
    if let newTrace { run.note("trace \(newTrace.traceID)") }
    // Opened before a publication, so that a missing file doesn't create a topic.
    let input: Input
    do throws(InputError) {
      input = try Input(source)
    } catch {
      return run.finish(.failure, error.description)
    }
    run.connect(persistence) { client in Publishing(self, input, run, client).start() }
  }
}

extension TraceContext {
  /// The trace as headers of a record.
  fileprivate var headers: [Message.Header] {
    var message = Message("")
    message.trace = self
    return message.headers
  }
}

/// A header as an argument: `NAME=VALUE`.
enum HeaderText {
  static func parse(_ bytes: [UInt8]) throws(ValueError) -> Message.Header {
    let (name, value) = try pair(bytes)
    return Message.Header(name, value)
  }

  /// Splits a header into its name, which must be UTF-8, and its value, which may be any bytes.
  static func pair(_ bytes: [UInt8]) throws(ValueError) -> (name: String, value: [UInt8]) {
    guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals > 0 else {
      throw ValueError("'\(Argument(bytes).text)' isn't a header; write NAME=VALUE")
    }
    let name = Argument(bytes[..<equals])
    guard name.isText else {
      throw ValueError("the name '\(name.text)' isn't UTF-8; only the value may be other bytes")
    }
    return (name.text, Array(bytes[(equals + 1)...]))
  }
}
