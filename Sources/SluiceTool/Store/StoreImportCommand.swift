import Glibc
import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// `sluice store import`
struct StoreImportCommand: Command {
  let directory: String
  /// Nil for standard input.
  let file: String?
  let isReplacing: Bool
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store import", summary: "bring exported topics into a store",
    operands: [Operand("DIR"), Operand("FILE", .optional)],
    options: [
      CommandOption("replace", help: "Replace topics that are there already. Otherwise they are refused."),
      StoreCommand.progress, StoreCommand.quiet,
    ],
    details: [
      """
      Reads what sluice store export has written, from FILE or from standard input. DIR is made if it isn't there; a store that is keeps what \
      it has. Either all of the topics are there in the end, or none of them: a file that is damaged or cut off is refused.
      """
    ],
    examples: [
      .init("Bring a backup back.", "sluice store import /var/lib/sluice topics.sluice"),
      .init(
        "Copy a topic from another machine.",
        "ssh other sluice store export /var/lib/sluice --topic orders.eu | sluice store import /var/lib/sluice"
      ),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    let operand = arguments.operands.count > 1 ? arguments.operands[1] : "-"
    file = operand == "-" ? nil : operand
    isReplacing = arguments.has("replace")
    isQuiet = arguments.has("quiet")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      let input = try ImportFile(file, job)
      if let size = input.size { job.expect(size) }
      // Nothing is made for something else than an export.
      var reader = unsafe ExportReader(input.read)
      try reader.begin()
      let store = try StoreJob.open(directory, .create)
      let summary: StoreImport
      do throws(StoreError) {
        summary = try StoreImport.run(
          into: store, replacing: isReplacing, progress: { job.progressed(to: $0) }, from: reader)
      } catch {
        try? store.leave()
        throw error
      }
      try store.leave()
      if !isQuiet { run.note("imported \(StoreTable.text(summary))") }
      return .init()
    }
  }
}
