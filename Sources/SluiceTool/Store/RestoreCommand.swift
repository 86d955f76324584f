import SluiceClient
import SluiceCommand
import SluiceStore

struct RestoreCommand: Command {
  /// Nil for standard input.
  let file: String?
  /// Empty for all topics.
  let topics: [String]
  let isResuming: Bool
  /// The header for the original time of each record; nil for none.
  let timeHeader: String?
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice restore", summary: "bring exported topics into a running broker or cluster",
    operands: [Operand("FILE", .optional)],
    options: [
      CommandOption(
        "topic", value: "TOPIC", help: "Only this topic. Without it, all topics.", isRepeatable: true),
      CommandOption(
        "resume",
        help:
          "Continue an interrupted restore of the same file. Without it, topics that have records are refused."
      ),
      CommandOption(
        "time-header", value: "NAME",
        help: "Add this header to each record, with its original time in RFC 3339."),
      StoreCommand.progress, StoreCommand.quiet,
    ],
    details: """
      Publishes the topics of an export, from FILE or standard input, to a running broker or cluster. The export was written by sluice backup or sluice store \
      export. It has topics with their settings, records with keys and headers in order, durable cursors, groups with their unacknowledged records, and how topics \
      ended. The sequences of producers are restored as well, so that records they send again aren't published twice.

      Each record is published exactly once, even if the restore is interrupted and run again with --resume. If a topic can't be restored, the command prints why, \
      restores the others, and ends with 1.

      Records get new times, and offsets from 0; cursors and groups stay at the same records. --time-header keeps the original times as headers. To keep times and \
      offsets, stop the broker and use sluice store import; nodes of a cluster have no directory for it. Trimmed records are left out. So are the sessions of MQTT \
      clients if gateways run already, because those have begun their own log.

      Needs the permissions to create, publish to and administer each topic.
      """,
    examples: [
      "Restore everything into a running broker.": "sluice restore topics.sluice",
      "Copy a broker's directory into a cluster.":
        "sluice store export /var/lib/sluice | sluice --server n1.example,n2.example,n3.example restore",
      "Copy one topic of another broker.":
        "ssh other sluice store export /var/lib/sluice --topic orders.eu | sluice restore --time-header original-time",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    file = arguments.operands.first { $0 != "-" }
    topics = arguments.texts("topic")
    isResuming = arguments.has("resume")
    timeHeader = arguments.text("time-header")
    if timeHeader == "" { throw UsageError("--time-header is empty; name a header") }
    isQuiet = arguments.has("quiet")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    run.connect { client in
      StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
        let input = try ImportFile(file, job)
        if let size = input.size { job.expect(size) }
        var restoring = Restoring(self, client, run)
        var reader = unsafe ExportReader(input.read)
        try reader.begin()
        while let section = try reader.next() {
          guard job.progressed(to: reader.bytes) else {
            return .failure("interrupted; to continue, restore again with --resume")
          }
          try restoring.take(section)
        }
        return try restoring.finish()
      }
    }
  }
}
