import SluiceClient
import SluiceCommand
import SluiceWire

/// The output of a command that changes a topic: a line; with `--verbose` the whole topic, with `--json` an object, with `--quiet` nothing.
struct TopicAnswer {
  private let asJSON: Bool
  private let isVerbose: Bool
  let isQuiet: Bool

  static let options = [TopicCommand.json, TopicCommand.verbose, TopicCommand.quiet]

  /// - Throws: `UsageError` if two of these options are given.
  init(_ arguments: ParsedArguments) throws(UsageError) {
    try arguments.allowOne(of: "json", "verbose", "quiet")
    asJSON = arguments.has("json")
    isVerbose = arguments.has("verbose")
    isQuiet = arguments.has("quiet")
  }

  func text(_ info: TopicInfo, _ line: (TopicInfo) -> String) -> String {
    if isQuiet { return "" }
    if asJSON { return TopicJSON.line(info) }
    return isVerbose ? TopicTable.show(info) : ShownText.line(line(info)) + "\n"
  }

  /// The named settings in parentheses, with a space in front: " (lossless, buffer 0)"; nothing when none is.
  func named(_ settings: TopicSettings) -> String {
    let named = TopicOption.written(settings).map { Self.words($0.name, $0.value) }
    return named.isEmpty ? "" : " (\(named.joined(separator: ", ")))"
  }

  /// "lossless", "buffer 0", "replay-age 2d".
  private static func words(_ name: String, _ value: String) -> String {
    switch (name, value) {
    case ("flow", _), ("storage", _), ("scope", _): value
    case ("compact", "on"), ("auto-delete", "on"): name
    case ("buffer-records", _): "buffer \(value)"
    default: "\(name) \(value)"
    }
  }

  /// The age of `--keep`, in milliseconds; nil without it.
  static func keptAge(_ arguments: ParsedArguments) throws(UsageError) -> UInt64? {
    try arguments.allowOne(of: "keep", "replay-age")
    let age = try arguments.value("keep") { text throws(ValueError) in
      var age = TopicSettings()
      try TopicOption.all.first { $0.name == "replay-age" }?.read(text, &age)
      return age.replayAge
    }
    return age.flatMap { $0 }
  }
}
