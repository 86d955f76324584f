import SluiceCommand
import SluiceStore
import SluiceStoreLMDB
import SluiceWire

struct StoreCommand: CommandGroup {
  static var needsBroker: Bool { false }

  static var members: [any Command.Type] {
    [
      StoreStatCommand.self, StoreVerifyCommand.self, StoreRepairCommand.self, StoreExportCommand.self,
      StoreImportCommand.self, StoreCompactCommand.self,
    ]
  }

  static let page = CommandPage(
    "sluice store", summary: "inspect, verify, repair, export and compact a broker's store",
    operands: [Operand("COMMAND")],
    details: """
      DIR is the directory that sluiced keeps durable topics in. The commands work on it directly, without a broker: stop the one that \
      has it open first. Only export works beside a running broker.
      """,
    examples: [
      "The topics, and the space that they take.": "sluice store stat /var/lib/sluice",
      "Whether all of it can be read.": "sluice store verify /var/lib/sluice",
      "A backup, while the broker runs.": "sluice store export /var/lib/sluice topics.sluice",
    ], commands: members.map { $0.page })

  static let json = CommandOption("json", help: "Print an object a line.")
  static let progress = CommandOption(
    "progress",
    help: "Say every second how far it is. On a terminal there is a line about it without this.")
  static let quiet = CommandOption("quiet", letter: "q", help: "Say nothing of what went well.")

  /// The FILE behind DIR; nil for standard input or output.
  static func file(_ arguments: ParsedArguments) -> String? {
    arguments.operands.dropFirst().first { $0 != "-" }
  }
}

struct StoreStatCommand: Command {
  let directory: String
  let topic: String?
  let asJSON: Bool

  static let page = CommandPage(
    "sluice store stat", summary: "show what a store has, and the space it takes",
    operands: [Operand("DIR"), Operand("TOPIC", .optional)], options: [StoreCommand.json],
    details: """
      A line for each topic, and one for the store; with TOPIC, everything about that one. Reads the index, not the \
      records themselves: to check those, see sluice store verify.
      """,
    examples: [
      "All topics.": "sluice store stat /var/lib/sluice",
      "One of them, with its settings.": "sluice store stat /var/lib/sluice orders.eu",
      "What could be given back to the disk.":
        "sluice store stat /var/lib/sluice --json | jq '.reusable_bytes // empty'",
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
        try job.print(asJSON ? StoreJSON.object(found).line : StoreTable.show(found))
      } else if asJSON {
        for topic in statistics.topics { try job.print(StoreJSON.object(topic).line) }
        try job.print(StoreJSON.object(statistics).line)
      } else {
        try job.print(StoreTable.list(statistics))
      }
      let unreadable = statistics.topics.count { $0.row == nil }
      guard unreadable > 0 else { return .success }
      return .failure("\(unreadable) topics of \(directory) can't be read; see sluice store verify")
    }
  }
}

struct StoreVerifyCommand: Command {
  let directory: String
  let asJSON: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store verify", summary: "check that everything in a store is in order",
    operands: [Operand("DIR")], options: [StoreCommand.json, StoreCommand.progress],
    details: """
      Reads all of it, and changes nothing: checksums, every record, and whether the index agrees with the records. Prints \
      the damage, and which records it has cost. Exits with 1 when there was damage.

      Gaps where a repair has taken records away are printed as well, and are no damage.
      """,
    examples: [
      "Find damage that a disk has done, while the broker is stopped.": "sluice store verify /var/lib/sluice",
      "Which topics have lost records.":
        "sluice store verify /var/lib/sluice --json | jq -r 'select(.missing > 0).topic' | sort -u",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    asJSON = arguments.has("json")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      let refusal = try job.refusesPages(of: directory) { fault in
        asJSON ? StoreJSON.object(fault: fault).line : "the file: \(fault)\n"
      }
      if let refusal { return refusal }
      let store = try StoreJob.open(directory, .readOnly)
      job.expect(try store.inspection().size.used)
      let summary = try StoreVerification.run(store, progress: { job.progressed(to: $0) }) { finding in
        job.note(asJSON ? StoreJSON.object(finding).line : "\(ShownText.line("\(finding)"))\n")
      }
      job.note(asJSON ? StoreJSON.object(summary).line : StoreTable.text(summary))
      guard summary.damaged > 0 else { return .success }
      return .failure(
        """
        \(directory) is damaged (\(StoreTable.counted(summary.damaged, "finding"))); \
        sluice store repair takes out what can't be used
        """)
    }
  }
}

struct StoreRepairCommand: Command {
  let directory: String
  let isDryRun: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store repair", summary: "take out of a store what is damaged", operands: [Operand("DIR")],
    options: [
      CommandOption("dry-run", help: "Change nothing; print what would be done."), StoreCommand.progress,
    ],
    details: """
      Finds what sluice store verify finds. Removes batches that can't be read, and nothing else; corrects the index of the others; \
      drops states that can't be read, so that their cursors, groups and producers start over; and gives a topic whose name is lost another one, \
      recovered and its number. Prints each step. Changes nothing when there is nothing to mend.

      A file whose structure is damaged (cut off, or with pages that the disk has lost) is built anew from all that can be read of it, which takes \
      room on the same disk for as much again. The old file stays until the new one is complete and in order.

      Records that were removed are gone: their subscribers are told that they lag by them. Keep a copy of the directory if it may \
      still be of use.
      """,
    examples: [
      "What would be lost?": "sluice store repair /var/lib/sluice --dry-run",
      "Mend it.": "sluice store repair /var/lib/sluice",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    isDryRun = arguments.has("dry-run")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      if isDryRun, let refusal = try job.refusesPages(of: directory) { return refusal }
      let rebuild =
        isDryRun ? nil : try LMDBStore.rebuild(at: directory) { job.checked($0, of: $1) }
      job.pagesAreChecked()
      if let rebuild { try job.print(StoreTable.text(rebuild)) }
      let store = try StoreJob.open(directory, isDryRun ? .readOnly : .existing)
      job.expect(try store.inspection().size.used)
      var left: [StoreFinding] = []
      let summary = try StoreRepair.run(
        store, isDryRun: isDryRun, progress: { !job.hasFailed && job.progressed(to: $0) },
        found: { finding in
          if finding.isLeftByRepair { left.append(finding) }
          // No step of the repair reports records that were lost with the file's pages.
          guard rebuild != nil, finding.missing?.isEmpty == false else { return }
          job.note("lost: \(ShownText.line("\(finding)"))\n")
        }, done: { step in job.note("\(ShownText.line("\(step)"))\n") })
      if job.hasFailed { return .success }
      if !isDryRun { try store.leave() }
      for finding in left { try job.print("left as it is: \(ShownText.line("\(finding)"))\n") }
      try job.print(StoreTable.text(summary, isDryRun: isDryRun))
      if isDryRun, summary.steps > 0 { return .failure("\(directory) is damaged; nothing was changed") }
      return summary.left > 0 ? .failure("not everything in \(directory) can be mended") : .success
    }
  }
}

struct StoreCompactCommand: Command {
  let directory: String
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice store compact", summary: "give a store's free space back to the disk",
    operands: [Operand("DIR")], options: [StoreCommand.quiet],
    details: """
      Puts a copy without free space in the store's place. While it is made, it takes as much room on the same disk as the store has in \
      use. When it is interrupted, by whatever, the store is as before.
      """, examples: ["After large topics were deleted.": "sluice store compact /var/lib/sluice"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    StoreJob.start(run) { job throws(StoreError) in
      if let refusal = try job.refusesPages(of: directory) { return refusal }
      let store = try StoreJob.open(directory, .existing)
      job.expect(try store.inspection().size.used)
      job.watch("\(directory)/new.mdb")
      let sizes = try store.compact()
      if !isQuiet {
        run.note("\(ByteSize.rounded(sizes.before)) before, \(ByteSize.rounded(sizes.after)) now")
      }
      return .success
    }
  }
}
