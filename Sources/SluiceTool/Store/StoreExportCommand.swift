import Glibc
import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// `sluice store export`
struct StoreExportCommand: Command {
  let directory: String
  let topics: [String]
  /// Nil for standard output.
  let file: String?
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store export", summary: "write topics to a file or a pipe",
    operands: [Operand("DIR"), Operand("FILE", .optional)],
    options: [
      CommandOption(
        "topic", value: "TOPIC", help: "Only this topic; all of them otherwise.", isRepeatable: true),
      StoreCommand.progress, StoreCommand.quiet,
    ],
    details: [
      """
      Writes to FILE, which must not be there yet, or to standard output. Settings, records with their offsets and times, where producers, \
      cursors and groups stand, and how topics ended: sluice store import makes the same topics of it, here or elsewhere.
      """,
      """
      What is damaged is left out and said, and the exit code is 1 then; the rest is whole.
      """,
    ],
    examples: [
      .init("A backup.", "sluice store export /var/lib/sluice topics.sluice"),
      .init(
        "One topic to another machine.",
        "sluice store export /var/lib/sluice --topic orders.eu | ssh other sluice store import /var/lib/sluice"
      ),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    let operand = arguments.operands.count > 1 ? arguments.operands[1] : "-"
    file = operand == "-" ? nil : operand
    topics = arguments.texts("topic")
    isQuiet = arguments.has("quiet")
    saysProgress = arguments.has("progress")
    if file == nil, isatty(STDOUT_FILENO) == 1 {
      throw UsageError("an export isn't for a terminal; name a FILE, or pipe it into something")
    }
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      let store = try StoreJob.open(directory, .readOnly)
      job.expect(try store.inspection().size.used)
      let output = try ExportFile(file)
      let summary: StoreExport
      do throws(StoreError) {
        summary = try unsafe StoreExport.run(
          store, topics: topics.isEmpty ? nil : topics, progress: { job.progressed(to: $0) },
          report: { run.note("left out: \(StoreTable.shown($0))") }, to: unsafe output.write)
        try output.finish()
      } catch {
        output.discard()
        if output.isUnwanted { return .init() }
        throw error
      }
      if !isQuiet { run.note("exported \(StoreTable.text(summary))") }
      guard summary.damaged > 0 else { return .init() }
      return .init(
        code: .failure, complaint: "the export is without what is damaged; see sluice store repair")
    }
  }
}
