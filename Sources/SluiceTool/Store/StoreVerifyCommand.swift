import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// `sluice store verify`
struct StoreVerifyCommand: Command {
  let directory: String
  let asJSON: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store verify", summary: "see whether everything in a store is in order",
    operands: [Operand("DIR")], options: [StoreCommand.json, StoreCommand.progress],
    details: [
      """
      Reads all of it, and changes nothing: checksums, every record, and whether what is said of the records agrees with them. Prints \
      what is damaged, and which records are gone for it. Exits with 1 when there was damage.
      """,
      """
      Gaps where a repair has taken records away are printed as well, and are no damage.
      """,
    ],
    examples: [
      .init("The broker is stopped, and this finds what a disk did.", "sluice store verify /var/lib/sluice"),
      .init(
        "Which topics have lost records.",
        "sluice store verify /var/lib/sluice --json | jq -r 'select(.missing > 0).topic' | sort -u"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    asJSON = arguments.has("json")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      let refusal = try job.refusesPages(of: directory) { fault in
        asJSON ? StoreJSON.line(fault: fault) : "the file: \(fault)\n"
      }
      if let refusal { return refusal }
      let store = try StoreJob.open(directory, .readOnly)
      job.expect(try store.inspection().size.used)
      var fault: StoreError?
      let summary = try StoreVerification.run(store, progress: { job.progressed(to: $0) }) { finding in
        if fault != nil { return }
        do throws(StoreError) {
          try job.print(asJSON ? StoreJSON.line(finding) : "\(StoreTable.shown(finding))\n")
        } catch {
          fault = error
        }
      }
      if let fault { throw fault }
      try job.print(asJSON ? StoreJSON.line(summary) : StoreTable.text(summary))
      guard summary.damaged > 0 else { return .init() }
      return .init(
        code: .failure,
        complaint: """
          \(directory) is damaged (\(Magnitude.grouped(summary.damaged)) finding\(summary.damaged == 1 ? "" : "s")); \
          sluice store repair takes out what can't be used
          """)
    }
  }
}
