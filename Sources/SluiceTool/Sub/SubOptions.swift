import SluiceClient
import SluiceCommand
import SluiceWire

/// The options of a subscription's durable cursor.
enum CursorOptions {
  static let options = [
    CommandOption(
      "cursor", value: "NAME",
      help:
        "Continue where the last subscription with this durable cursor stopped. The broker stores the position; --from is for the first subscription."
    ),
    CommandOption(
      "commit", value: "WHEN",
      help: "When the cursor is committed: printed, after a record was printed; auto, after it was received.",
      standard: "printed", choices: ["printed", "auto"]),
  ]

  static func cursor(_ arguments: ParsedArguments) throws(UsageError) -> SubscriptionPlan.Cursor? {
    let commit = try arguments.value(
      "commit", Values.choice(["printed": SubscriptionPlan.Cursor.Commit.manual, "auto": .automatic]))
    guard let name = arguments.text("cursor") else {
      if commit != nil { throw UsageError("--commit needs --cursor NAME") }
      return nil
    }
    return SubscriptionPlan.Cursor(try operand(name), commit: commit ?? .manual)
  }

  /// - Throws: `UsageError` when no cursor can have that name.
  static func operand(_ name: String) throws(UsageError) -> String {
    try UsageError.wrapping { () throws(WireError) in try TopicName.validate(name, as: "cursor") }
    return name
  }
}

/// Commits records in order after they were printed, some time after they arrived.
struct PrintedCommits {
  private var records = Fifo<(offset: UInt64, commits: CursorCommits)>()

  mutating func received(_ record: TopicRecord) {
    if let commits = record.commits { records.append((record.offset, commits)) }
  }

  /// Commits the next `count` records, which were printed.
  mutating func printed(_ count: Int) {
    if records.isEmpty { return }
    var last: (offset: UInt64, commits: CursorCommits)?
    for _ in 0..<count { last = records.removeFirst() ?? last }
    if let last { last.commits.commit(through: last.offset) }
  }
}

/// The options of a record filter.
enum FilterOptions {
  static let options = [
    CommandOption("key", value: "KEY", help: "Only records with this key.", takesBytes: true),
    CommandOption(
      "key-prefix", value: "TEXT", help: "Only records whose key begins with TEXT.", takesBytes: true),
    CommandOption("has-key", help: "Only records that have a key."),
    CommandOption(
      "header", value: "NAME=VALUE", help: "Only records that have this header; if repeated, all of them.",
      isRepeatable: true, takesBytes: true),
    CommandOption(
      "header-prefix", value: "NAME=TEXT",
      help: "Only records with a header NAME whose value begins with TEXT.", isRepeatable: true,
      takesBytes: true),
    CommandOption(
      "has-header", value: "NAME", help: "Only records that have the header NAME.", isRepeatable: true),
  ]

  static let details = """
    The broker sends only records that match all of --key, --key-prefix, --has-key, --header, --header-prefix and --has-header. Other records don't use up \
    the demand.
    """

  static func filter(_ arguments: ParsedArguments) throws(UsageError) -> RecordFilter {
    var filter = RecordFilter.all
    if let key = arguments.bytes("key") { filter = filter && .key(equals: key) }
    if let prefix = arguments.bytes("key-prefix") { filter = filter && .key(hasPrefix: prefix) }
    if arguments.has("has-key") { filter = filter && .hasKey }
    for (name, value) in try arguments.values("header", bytes: HeaderText.pair) {
      filter = filter && .header(name, equals: value)
    }
    for (name, prefix) in try arguments.values("header-prefix", bytes: HeaderText.pair) {
      filter = filter && .header(name, hasPrefix: prefix)
    }
    for name in arguments.texts("has-header") { filter = filter && .hasHeader(name) }
    do {
      try filter.validate()
    } catch {
      throw UsageError(error.message)
    }
    return filter
  }
}
