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
    "sluice store", summary: "verify, repair, export, import and compact a broker's store",
    operands: [Operand("COMMAND")],
    details: """
      DIR is the directory of sluiced --data. The commands work on its files: stop the broker first. Only export also works while the broker runs.
      """,
    examples: [
      "Show the topics, and their size on disk.": "sluice store stat /var/lib/sluice",
      "Check that everything can be read.": "sluice store verify /var/lib/sluice",
      "Back up while the broker runs.": "sluice store export /var/lib/sluice topics.sluice",
    ], commands: members.map { $0.page })

  static let json = CommandOption("json", help: "Print an object a line.")
  static let progress = CommandOption(
    "progress",
    help: "Print progress every second. A terminal shows it without this option.")
  static let quiet = CommandOption("quiet", letter: "q", help: "Print nothing on success.")

  /// The operand FILE after DIR; nil for standard input or output.
  static func file(_ arguments: ParsedArguments) -> String? {
    arguments.operands.dropFirst().first { $0 != "-" }
  }
}

struct StoreStatCommand: Command {
  let directory: String
  let topic: String?
  let asJSON: Bool

  static let page = CommandPage(
    "sluice store stat", summary: "show a store's topics, and their size on disk",
    operands: [Operand("DIR"), Operand("TOPIC", .optional)], options: [StoreCommand.json],
    details: """
      Prints a line for each topic, and one for the store; with TOPIC, everything about that topic. Reads only the index: to check the records, see sluice store \
      verify.
      """,
    examples: [
      "All topics.": "sluice store stat /var/lib/sluice",
      "One topic, with its settings.": "sluice store stat /var/lib/sluice orders.eu",
      "The space that sluice store compact would free.":
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
    "sluice store verify", summary: "check a store for damage",
    operands: [Operand("DIR")], options: [StoreCommand.json, StoreCommand.progress],
    details: """
      Reads everything and changes nothing: checksums, every record, and whether the index matches the records. Prints the damage, and the records that are lost \
      by it. Ends with 1 if there is damage.

      Also prints gaps that a repair has left, which aren't damage.
      """,
    examples: [
      "Check a store while the broker is stopped.": "sluice store verify /var/lib/sluice",
      "Which topics have lost records?":
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
        sluice store repair removes the damaged parts
        """)
    }
  }
}

struct StoreRepairCommand: Command {
  let directory: String
  let isDryRun: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store repair", summary: "remove the damaged parts of a store", operands: [Operand("DIR")],
    options: [
      CommandOption("dry-run", help: "Change nothing; print the repairs."), StoreCommand.progress,
    ],
    details: """
      Finds the same damage as sluice store verify, and prints each repair. Removes batches that can't be read, and no other records. Corrects the index. Removes \
      states that can't be read, so that their cursors, groups and producers start over. Names a topic whose name is lost recovered.NUMBER. Changes nothing if there \
      is no damage.

      If the structure of the file is damaged (it is cut off, or the disk has lost pages), repair rebuilds the file from all readable parts, which needs as much room \
      again on the same disk. The old file stays until the new one is complete.

      Removed records are lost: subscribers get the number of records that they missed. Keep a copy of the directory if you may still need it.
      """,
    examples: [
      "What would be lost?": "sluice store repair /var/lib/sluice --dry-run",
      "Repair the store.": "sluice store repair /var/lib/sluice",
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
          // The repair's steps don't report records that were lost with the file's pages.
          guard rebuild != nil, finding.missing?.isEmpty == false else { return }
          job.note("lost: \(ShownText.line("\(finding)"))\n")
        }, done: { step in job.note("\(ShownText.line("\(step)"))\n") })
      if job.hasFailed { return .success }
      if !isDryRun { try store.leave() }
      for finding in left { try job.print("not repaired: \(ShownText.line("\(finding)"))\n") }
      try job.print(StoreTable.text(summary, isDryRun: isDryRun))
      if isDryRun, summary.steps > 0 { return .failure("\(directory) is damaged; nothing was changed") }
      return summary.left > 0 ? .failure("not all damage in \(directory) can be repaired") : .success
    }
  }
}

struct StoreCompactCommand: Command {
  let directory: String
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice store compact", summary: "return a store's free space to the disk",
    operands: [Operand("DIR")], options: [StoreCommand.quiet],
    details: """
      Replaces the store with a copy without free space. The copy needs as much room on the same disk as the store uses. If the command is interrupted, the store \
      is unchanged.
      """, examples: ["Free space after large topics were deleted.": "sluice store compact /var/lib/sluice"])

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
        run.note(
          "compacted \(directory) from \(ByteSize.rounded(sizes.before)) to \(ByteSize.rounded(sizes.after))")
      }
      return .success
    }
  }
}
