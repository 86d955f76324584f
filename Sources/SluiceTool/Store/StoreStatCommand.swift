import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// `sluice store stat`
struct StoreStatCommand: Command {
  let directory: String
  let topic: String?
  let asJSON: Bool

  static let page = CommandPage(
    "sluice store stat", summary: "show what a store has, and the space it takes",
    operands: [Operand("DIR"), Operand("TOPIC", .optional)], options: [StoreCommand.json],
    details: [
      """
      A line for each topic, and one for the store; with TOPIC, all that is known of that one. Reads what is said of records, not the \
      records themselves: for whether they are in order, see sluice store verify.
      """
    ],
    examples: [
      .init("All topics.", "sluice store stat /var/lib/sluice"),
      .init("One of them, with its settings.", "sluice store stat /var/lib/sluice orders.eu"),
      .init(
        "What could be given back to the disk.",
        "sluice store stat /var/lib/sluice --json | jq '.reusable_bytes // empty'"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    topic = arguments.operands.count > 1 ? arguments.operands[1] : nil
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    StoreJob.start(run) { job throws(StoreError) in
      let store = try StoreJob.open(directory, .readOnly)
      let statistics = try StoreStatistics(of: store) { job.progressed(to: $0) }
      if let topic {
        guard let found = statistics.topics.last(where: { $0.row?.name == topic }) else {
          throw StoreError(.failed, "there is no topic \(topic) in \(directory)")
        }
        try job.print(asJSON ? StoreJSON.line(found) : StoreTable.show(found))
      } else if asJSON {
        for topic in statistics.topics { try job.print(StoreJSON.line(topic)) }
        try job.print(StoreJSON.line(statistics))
      } else {
        try job.print(StoreTable.list(statistics))
      }
      let unreadable = statistics.topics.count { $0.row == nil }
      guard unreadable > 0 else { return .init() }
      return .init(
        code: .failure,
        complaint: "\(unreadable) topics of \(directory) can't be read; see sluice store verify")
    }
  }
}
