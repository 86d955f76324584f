import SluiceClient
import SluiceCommand
import SluiceStore

struct RestoreCommand: Command {
  /// Nil for standard input.
  let file: String?
  /// None for all.
  let topics: [String]
  let isResuming: Bool
  /// The header that gets the time of each record; nil for none.
  let timeHeader: String?
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice restore", summary: "bring exported topics into a running broker or cluster",
    operands: [Operand("FILE", .optional)],
    options: [
      CommandOption(
        "topic", value: "TOPIC", help: "Only this topic; all of them otherwise.", isRepeatable: true),
      CommandOption(
        "resume",
        help:
          "Go on with topics that a restore of the same file has begun. Otherwise topics with records are refused."
      ),
      CommandOption(
        "time-header", value: "NAME",
        help: "Give each record this header with the time that it had, in RFC 3339."),
      StoreCommand.progress, StoreCommand.quiet,
    ],
    details: """
      Reads what sluice store export or sluice backup has written, from FILE or from standard input, and publishes it, so the broker goes on serving: topics with their settings, records with keys \
      and headers in their order, how topics ended, where durable cursors stand, groups with what their members haven't acknowledged, and the numbers of producers' records, so that what they \
      send again is published once. Each record is published exactly once, also when the restore is interrupted and \
      run again with --resume. A topic that can't be restored doesn't keep the others from it; the command ends with 1 then, and says why.

      What the protocol can't carry: records get new times, and offsets from 0 on; cursors and groups are put at the same records. --time-header keeps the times as headers. \
      sluice store import carries all of it into the directory of a broker that is stopped; the nodes of a cluster have none. Records that were trimmed are left out. \
      So are the sessions of MQTT clients where gateways run already: they have begun a log of their own. \
      Needs the rights to create, to publish to and to administer each topic.
      """,
    examples: [
      "Everything, into a broker that runs.": "sluice restore topics.sluice",
      "A broker's directory, into a cluster.":
        "sluice store export /var/lib/sluice | sluice --server n1.example,n2.example,n3.example restore",
      "One topic of another broker.":
        "ssh other sluice store export /var/lib/sluice --topic orders.eu | sluice restore --time-header original-time",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    file = arguments.operands.first { $0 != "-" }
    topics = arguments.texts("topic")
    isResuming = arguments.has("resume")
    timeHeader = arguments.text("time-header")
    if timeHeader == "" { throw UsageError("--time-header: a header has a name") }
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
          guard job.progressed(to: reader.bytes) else { return .failure("it was stopped; --resume goes on") }
          try restoring.take(section)
        }
        return try restoring.finish()
      }
    }
  }
}
