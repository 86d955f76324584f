import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// `sluice store compact`
struct StoreCompactCommand: Command {
  let directory: String
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice store compact", summary: "give a store's free space back to the disk",
    operands: [Operand("DIR")], options: [StoreCommand.quiet],
    details: [
      """
      Puts a copy without free space in the store's place. While it is made, it takes as much room on the same disk as the store has in \
      use. When it is interrupted, by whatever, the store is as before.
      """
    ],
    examples: [.init("After large topics were deleted.", "sluice store compact /var/lib/sluice")])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    StoreJob.start(run) { job throws(StoreError) in
      if let refusal = try job.refusesPages(of: directory) { return refusal }
      let store = try StoreJob.open(directory, .existing)
      let sizes = try store.compact()
      if !isQuiet {
        run.note("\(ByteSize.rounded(sizes.before)) before, \(ByteSize.rounded(sizes.after)) now")
      }
      return .init()
    }
  }
}
