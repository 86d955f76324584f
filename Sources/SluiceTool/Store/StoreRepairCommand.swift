import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// `sluice store repair`
struct StoreRepairCommand: Command {
  let directory: String
  let isDryRun: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store repair", summary: "take out of a store what is damaged", operands: [Operand("DIR")],
    options: [
      CommandOption("dry-run", help: "Change nothing; print what would be done."), StoreCommand.progress,
    ],
    details: [
      """
      Finds what sluice store verify finds. Removes batches that can't be read, and nothing else; corrects what is said of the others; \
      drops states that can't be read, so that what they were about starts over; and gives a topic whose name is lost another one, \
      recovered and its number. Prints each step. Changes nothing when there is nothing to mend.
      """,
      """
      A file whose structure is damaged (cut off, or with pages that the disk has lost) is built anew from all that can be read of it, which takes \
      room on the same disk for as much again. The old file stays until the new one is complete and in order.
      """,
      """
      Records that were removed are gone: their subscribers are told that they lag by them. Keep a copy of the directory if it may \
      still be of use.
      """,
    ],
    examples: [
      .init("What would be lost?", "sluice store repair /var/lib/sluice --dry-run"),
      .init("Mend it.", "sluice store repair /var/lib/sluice"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    isDryRun = arguments.has("dry-run")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      if isDryRun, let refusal = try job.refusesPages(of: directory) { return refusal }
      let rebuild = isDryRun ? nil : try LMDBStore.rebuild(at: directory)
      if let rebuild { try job.print(StoreTable.text(rebuild)) }
      let store = try StoreJob.open(directory, isDryRun ? .readOnly : .existing)
      job.expect(try store.inspection().size.used)
      var fault: StoreError?
      var left: [StoreFinding] = []
      let summary = try StoreRepair.run(
        store, isDryRun: isDryRun, progress: { fault == nil && job.progressed(to: $0) },
        found: { finding in
          if finding.isLeftByRepair { left.append(finding) }
          // What was lost with the file's pages no step tells.
          guard rebuild != nil, finding.missing?.isEmpty == false, fault == nil else { return }
          do throws(StoreError) {
            try job.print("lost: \(StoreTable.shown(finding))\n")
          } catch {
            fault = error
          }
        },
        done: { step in
          do throws(StoreError) {
            try job.print(StoreTable.shown("\(step)") + "\n")
          } catch {
            fault = error
          }
        })
      if let fault { throw fault }
      if !isDryRun { try store.leave() }
      for finding in left { try job.print("left as it is: \(StoreTable.shown(finding))\n") }
      try job.print(StoreTable.text(summary, isDryRun: isDryRun))
      if isDryRun, summary.steps > 0 {
        return .init(code: .failure, complaint: "\(directory) is damaged; nothing was changed")
      }
      guard summary.left > 0 else { return .init() }
      return .init(code: .failure, complaint: "not everything in \(directory) can be mended")
    }
  }
}
