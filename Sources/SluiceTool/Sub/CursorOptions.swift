import SluiceClient
import SluiceCommand
import SluiceWire

/// The durable cursor that a subscription uses, as options.
enum CursorOptions {
  static let options = [
    CommandOption(
      "cursor", value: "NAME",
      help:
        "Go on where the last subscription that named this cursor had come to; --from is for the first. The broker keeps the place."
    ),
    CommandOption(
      "commit", value: "WHEN",
      help: "When the cursor moves on: printed, behind what was printed; auto, behind what was received.",
      standard: "printed", choices: ["printed", "auto"]),
  ]

  static func cursor(_ arguments: ParsedArguments) throws(UsageError) -> SubscriptionPlan.Cursor? {
    let commit = try arguments.value(
      "commit", Values.choice(["printed": SubscriptionPlan.Cursor.Commit.manual, "auto": .automatic]))
    guard let name = arguments.text("cursor") else {
      if commit != nil { throw UsageError("--commit is about a cursor; name it with --cursor") }
      return nil
    }
    return SubscriptionPlan.Cursor(try operand(name), commit: commit ?? .manual)
  }

  /// - Throws: `UsageError` when no cursor can have that name.
  static func operand(_ name: String) throws(UsageError) -> String {
    do {
      try TopicName.validate(name, as: "cursor")
      return name
    } catch {
      throw UsageError(error.message)
    }
  }
}

/// Commits records when they are printed, which is some time after they came, in their order.
struct PrintedCommits {
  private var records: [(offset: UInt64, commits: CursorCommits)] = []
  private var next = 0

  mutating func received(_ record: TopicRecord) {
    if let commits = record.commits { records.append((record.offset, commits)) }
  }

  /// So many more were printed.
  mutating func printed(_ count: Int) {
    guard count > 0, next < records.count else { return }
    next = min(next + count, records.count)
    let last = records[next - 1]
    last.commits.commit(through: last.offset)
    // Seldom, so that it costs little.
    if next > records.count / 2 {
      records.removeFirst(next)
      next = 0
    }
  }
}
