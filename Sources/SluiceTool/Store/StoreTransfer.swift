import Glibc
import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// The output of an export, and how many earlier exports to keep.
struct ExportTarget {
  /// Nil for standard output.
  let file: String?
  /// The name of a file that gets its name when it is complete; nil for other outputs.
  private let backup: BackupName?

  static let options = [
    CommandOption(
      "to", value: "FILE",
      help:
        "Write to FILE, where {time} stands for the time in UTC, like 20260203T040506Z. The file gets its name when it is complete; until then it is FILE.PROCESS.partial. Leftovers of killed exports to FILE are removed."
    ),
    CommandOption(
      "keep-copies", value: "N",
      help: "With --to: keep only the newest N files of that name, including this one."),
  ]

  /// - Parameter operand: the file given as an operand; nil for none.
  init(_ arguments: ParsedArguments, operand: String?) throws(UsageError) {
    let template = arguments.text("to")
    if template != nil, operand != nil { throw UsageError("--to names the file; leave FILE out") }
    let count = try arguments.value("keep-copies", Values.count(in: 1...1_000_000))
    guard count == nil || template?.contains(BackupName.placeholder) == true else {
      throw UsageError("--keep-copies needs --to with a FILE that contains {time}")
    }
    backup = template.map { BackupName($0, keeping: count.map { Int($0) }) }
    file = backup?.path(at: WallTime.now) ?? operand.flatMap { $0 == "-" ? nil : $0 }
    if file == nil, isatty(STDOUT_FILENO) == 1 {
      throw UsageError("an export can't be printed on a terminal; name a FILE, or use a pipe")
    }
  }

  /// Calls `body` to write the export. Removes an incomplete file, or, after a complete one, the earlier copies beyond the limit.
  ///
  /// - Returns: the result of `body`; nil if the reader of a pipe has closed it.
  func write<Result>(_ body: (ExportFile) throws(StoreError) -> Result) throws(StoreError) -> Result? {
    backup?.removeAbandoned()
    let output = try ExportFile(file, isNamedWhenWhole: backup != nil)
    let result: Result
    do throws(StoreError) {
      result = try body(output)
      try output.finish()
    } catch {
      output.discard()
      if output.isUnwanted { return nil }
      throw error
    }
    try backup?.removeOld()
    return result
  }
}

struct StoreExportCommand: Command {
  let directory: String
  let topics: [String]
  let target: ExportTarget
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store export", summary: "write topics to a file or a pipe",
    operands: [Operand("DIR"), Operand("FILE", .optional)],
    options: [
      CommandOption(
        "topic", value: "TOPIC", help: "Only this topic. Without it, all topics.", isRepeatable: true)
    ] + ExportTarget.options + [StoreCommand.progress, StoreCommand.quiet],
    details: """
      Writes to FILE, which must not exist, or to standard output. An export has settings, records with offsets and times, the positions of producers, cursors and \
      groups, and how topics ended. sluice store import creates the same topics from it, here or elsewhere.

      A broker may run on DIR meanwhile: the export has the state of the moment when it began. Run the command as the broker's user, on the same machine and in the \
      same container. Space that the broker frees meanwhile is reused after the export. The nodes of a cluster have no directories: see sluice backup.

      Damaged parts are left out and printed, and the command ends with 1. The rest of the export is complete.
      """,
    examples: [
      "Back up all topics.": "sluice store export /var/lib/sluice topics.sluice",
      "Back up with the time in the name, and keep the last seven.":
        "sluice store export /var/lib/sluice --to /backup/sluice-{time}.export --keep-copies 7",
      "Copy one topic to another machine.":
        "sluice store export /var/lib/sluice --topic orders.eu | ssh other sluice store import /var/lib/sluice",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    topics = arguments.texts("topic")
    target = try ExportTarget(arguments, operand: arguments.operands.dropFirst().first)
    isQuiet = arguments.has("quiet")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      let store = try StoreJob.open(directory, .snapshot)
      defer { try? store.close() }
      job.expect(try store.inspection().size.used)
      let written = try target.write { output throws(StoreError) in
        try unsafe StoreExport.run(
          store, topics: topics.isEmpty ? nil : topics, progress: { job.progressed(to: $0) },
          report: { run.note("left out: \($0)") }, to: unsafe output.write)
      }
      guard let summary = written else { return .success }
      if !isQuiet { run.note("exported \(StoreTable.text(summary.topics, summary.records, summary.states))") }
      guard summary.damaged > 0 else { return .success }
      return .failure("damaged parts are missing in the export; see sluice store repair")
    }
  }
}

struct StoreImportCommand: Command {
  let directory: String
  /// Nil for standard input.
  let file: String?
  let isReplacing: Bool
  let isQuiet: Bool
  let saysProgress: Bool

  static let page = CommandPage(
    "sluice store import", summary: "write exported topics into a store",
    operands: [Operand("DIR"), Operand("FILE", .optional)],
    options: [
      CommandOption("replace", help: "Replace topics that exist. Without it, they are refused."),
      StoreCommand.progress, StoreCommand.quiet,
    ],
    details: """
      Reads an export from FILE or standard input. Creates DIR if needed; the other topics of an existing store stay. Imports all topics or none: a damaged or \
      incomplete export is refused. Subscribers and producers that have records beyond the export continue at its end, with a notice of the loss.

      The nodes of a cluster have no directories: for a cluster or a running broker, see sluice restore.
      """,
    examples: [
      "Restore a backup.": "sluice store import /var/lib/sluice topics.sluice",
      "Copy a topic from another machine.":
        "ssh other sluice store export /var/lib/sluice --topic orders.eu | sluice store import /var/lib/sluice",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.operands[0]
    file = StoreCommand.file(arguments)
    isReplacing = arguments.has("replace")
    isQuiet = arguments.has("quiet")
    saysProgress = arguments.has("progress")
  }

  func start(_ run: Run) {
    StoreJob.start(run, saysProgress: saysProgress) { job throws(StoreError) in
      let input = try ImportFile(file, job)
      if let size = input.size { job.expect(size) }
      // Read first, so that no store is created for an invalid export.
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
      if !isQuiet { run.note("imported \(StoreTable.text(summary.topics, summary.records, summary.states))") }
      return .success
    }
  }
}

/// The input of an import. Used by one thread.
final class ImportFile {
  /// How often, in milliseconds, a waiting read checks whether the job was stopped.
  private static let interval: Int32 = 200

  private let path: String?
  private let descriptor: Int32
  private let job: StoreJob

  /// - Parameter path: nil for standard input.
  init(_ path: String?, _ job: StoreJob) throws(StoreError) {
    self.path = path
    self.job = job
    guard let path else {
      descriptor = STDIN_FILENO
      return
    }
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw StoreError(.failed, "cannot open \(path): \(Descriptor.reason())")
    }
  }

  deinit {
    if path != nil { close(descriptor) }
  }

  /// The size in bytes; nil if it isn't a regular file.
  var size: UInt64? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return UInt64(status.st_size)
  }

  func read(_ target: UnsafeMutableRawBufferPointer) -> Result<Int, StoreError> {
    while true {
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let isReady = unsafe poll(&waiting, 1, Self.interval)
      if job.isStopped { return .failure(StoreError(.failed, "interrupted")) }
      if isReady == 0 || (isReady < 0 && errno == EINTR) { continue }
      let count = unsafe Glibc.read(descriptor, target.baseAddress, target.count)
      if count >= 0 { return .success(count) }
      guard errno == EINTR || errno == EAGAIN else {
        return .failure(
          StoreError(
            .failed, "cannot read \(path ?? "standard input"): \(Descriptor.reason())"))
      }
    }
  }
}
