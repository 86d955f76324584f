import Glibc
import SluiceCommand
import SluiceStore
import SluiceStoreLMDB

/// Where a command writes an export, and how many earlier ones stay.
struct ExportTarget {
  /// Nil for standard output.
  let file: String?
  /// The name of a file that has its name only when it is whole; nil for others.
  private let backup: BackupName?

  static let options = [
    CommandOption(
      "to", value: "FILE",
      help:
        "Write to FILE, in which {time} stands for the time in UTC, like 20260203T040506Z. The file has its name only when it is whole. Until then it is FILE.PROCESS.partial; what killed exports to FILE left behind is removed."
    ),
    CommandOption(
      "keep-copies", value: "N",
      help: "With --to: remove all but the newest N files of such names, this one included."),
  ]

  /// - Parameter operand: the file that was named without an option; nil for none.
  init(_ arguments: ParsedArguments, operand: String?) throws(UsageError) {
    let template = arguments.text("to")
    if template != nil, operand != nil { throw UsageError("--to names the file; leave FILE out") }
    let count = try arguments.value("keep-copies", Values.count(in: 1...1_000_000))
    guard count == nil || template?.contains(BackupName.placeholder) == true else {
      throw UsageError("--keep-copies needs --to with {time} in it, by which files are told apart")
    }
    backup = template.map { BackupName($0, keeping: count.map { Int($0) }) }
    file = backup?.path(at: WallTime.now) ?? operand.flatMap { $0 == "-" ? nil : $0 }
    if file == nil, isatty(STDOUT_FILENO) == 1 {
      throw UsageError("an export isn't for a terminal; name a FILE, or pipe it into something")
    }
  }

  /// Has `body` write the export. What isn't whole in the end is removed; earlier copies that are too many are once it is.
  ///
  /// - Returns: what `body` does; nil when the reader of a pipe wants no more.
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
        "topic", value: "TOPIC", help: "Only this topic; all of them otherwise.", isRepeatable: true)
    ] + ExportTarget.options + [StoreCommand.progress, StoreCommand.quiet],
    details: """
      Writes to FILE, which must not be there yet, or to standard output. Settings, records with their offsets and times, where producers, \
      cursors and groups stand, and how topics ended: sluice store import makes the same topics of it, here or elsewhere.

      A broker may run on DIR meanwhile: everything in the export is of one moment, when it began. Run it as the broker's user, on the same machine and in the same \
      container. Space that the broker frees while it is exported is used again when that is over. The nodes of a cluster have no directories: sluice backup exports a \
      cluster's topics.

      What is damaged is left out and said, and the exit code is 1 then; the rest is whole.
      """,
    examples: [
      "A backup.": "sluice store export /var/lib/sluice topics.sluice",
      "One with the time in its name, and the last seven are kept.":
        "sluice store export /var/lib/sluice --to /backup/sluice-{time}.export --keep-copies 7",
      "One topic to another machine.":
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
      return .failure("the export is without what is damaged; see sluice store repair")
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
    "sluice store import", summary: "bring exported topics into a store",
    operands: [Operand("DIR"), Operand("FILE", .optional)],
    options: [
      CommandOption("replace", help: "Replace topics that are there already. Otherwise they are refused."),
      StoreCommand.progress, StoreCommand.quiet,
    ],
    details: """
      Reads what sluice store export has written, from FILE or from standard input. DIR is made if it isn't there; a store that is keeps what \
      it has. Either all of the topics are there in the end, or none of them: a file that is damaged or cut off is refused. Subscribers and producers that know more of a topic than the \
      export has go on where it ends, and are told so.

      The nodes of a cluster have no directories: sluice restore brings an export into a cluster, or into a broker that runs.
      """,
    examples: [
      "Bring a backup back.": "sluice store import /var/lib/sluice topics.sluice",
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
      if !isQuiet { run.note("imported \(StoreTable.text(summary.topics, summary.records, summary.states))") }
      return .success
    }
  }
}

/// Where an export comes from. Used by one thread.
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

  /// Its bytes, if it is a file.
  var size: UInt64? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return UInt64(status.st_size)
  }

  func read(_ target: UnsafeMutableRawBufferPointer) -> Result<Int, StoreError> {
    while true {
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let isReady = unsafe poll(&waiting, 1, Self.interval)
      if job.isStopped { return .failure(StoreError(.failed, "it was stopped")) }
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
