import Glibc
import SluiceCommand
import SluiceIO
import SluiceStore
import SluiceStoreLMDB
import SluiceWire
import Synchronization

/// A job on a store. Runs on a thread of its own, because disks block.
final class StoreJob: Sendable {
  /// How it ended.
  enum Outcome: Sendable {
    case success
    /// With a message for standard error.
    case failure(String)
  }

  /// How often `--progress` prints progress.
  private static let interval = Duration.seconds(1)

  private let done = Atomic<UInt64>(0)
  private let total: Atomic<UInt64> = Atomic(0)
  /// Bytes of the store's file; 0 before its pages are checked.
  private let fileBytes: Atomic<UInt64> = Atomic(0)
  /// The progress of earlier phases, in bytes.
  private let base: Atomic<UInt64> = Atomic(0)
  private let stopped = Atomic(false)
  private let watched = Mutex<String?>(nil)
  /// The progress line; nil without a terminal.
  private let progressLine = Mutex<TerminalLine?>(nil)
  /// The first error of printing in `note(_:)`, which doesn't end the job at once.
  private let fault = Mutex<StoreError?>(nil)

  private init() {}

  /// How long an interrupted job may take to stop. The process may then end at any point, since commits are atomic.
  private static let stopTimeout = Duration.seconds(2)

  /// Runs `body`, and ends the run with its outcome or error. Ctrl-C stops it at the next safe point.
  static func start(
    _ run: Run, saysProgress: Bool = false,
    _ body: @escaping @Sendable (StoreJob) throws(StoreError) -> Outcome
  ) {
    let job = StoreJob()
    run.interrupted = {
      job.stopped.store(true, ordering: .relaxed)
      _ = run.loop.schedule(after: stopTimeout) { run.finish(.interrupted) }
    }
    FaultyPages.explain()
    if saysProgress { job.scheduleProgress(run, interval) } else { job.showProgress(run) }
    Threads.start {
      let result = Result { () throws(StoreError) in
        let outcome = try body(job)
        if let fault = job.fault.withLock({ $0 }) { throw fault }
        return outcome
      }
      run.loop.execute {
        switch result {
        case _ where job.isStopped: run.finish(.interrupted)
        case .success(.success): run.finish(.success)
        case .success(.failure(let complaint)): run.finish(.failure, complaint)
        case .failure(let error): run.finish(.failure, error.message)
        }
      }
    }
  }

  private func showProgress(_ run: Run) {
    let line = ProgressLine.start(run) { [self] in
      var status = stat()
      if let path = watched.withLock({ $0 }), unsafe stat(path, &status) == 0 {
        done.store(base.load(ordering: .relaxed) + UInt64(max(status.st_size, 0)), ordering: .relaxed)
      }
      let (done, total) = (done.load(ordering: .relaxed), total.load(ordering: .relaxed))
      return done == 0 ? nil : ProgressLine.Figures(done: done, total: total == 0 ? nil : total, unit: .bytes)
    }
    progressLine.withLock { $0 = line }
  }

  private func scheduleProgress(_ run: Run, _ interval: Duration) {
    _ = run.loop.schedule(after: interval) { [self] in
      let (done, total) = (done.load(ordering: .relaxed), total.load(ordering: .relaxed))
      if done > 0 {
        run.note(
          total > 0
            ? "\(ByteSize.rounded(done)) of about \(ByteSize.rounded(total))" : "\(ByteSize.rounded(done))")
      }
      scheduleProgress(run, interval)
    }
  }

  // MARK: On its thread

  var isStopped: Bool { stopped.load(ordering: .relaxed) }

  /// Records progress of the present phase, in bytes. Returns false if the job was stopped.
  func progressed(to bytes: UInt64) -> Bool {
    done.store(base.load(ordering: .relaxed) + bytes, ordering: .relaxed)
    return !isStopped
  }

  /// Takes the length of a file as the progress of the present phase.
  func watch(_ path: String) {
    watched.withLock { $0 = path }
  }

  /// Sets the approximate number of bytes that the present and later phases will read.
  func expect(_ bytes: UInt64) {
    total.store(base.load(ordering: .relaxed) + bytes, ordering: .relaxed)
  }

  /// Records progress of checking and rebuilding the file's pages. Its records are read afterwards: about as many bytes as the file has.
  func checked(_ bytes: UInt64, of all: UInt64) -> Bool {
    // The first of these steps reads the file once.
    if fileBytes.load(ordering: .relaxed) == 0 { fileBytes.store(all, ordering: .relaxed) }
    expect(all + fileBytes.load(ordering: .relaxed))
    return progressed(to: bytes)
  }

  /// Begins the phase after the check of the pages.
  func pagesAreChecked() {
    base.store(done.load(ordering: .relaxed), ordering: .relaxed)
  }

  /// Prints a piece of the result.
  ///
  /// - Throws: ``StoreError`` if writing fails. A closed pipe isn't an error: it ends the process quietly.
  func print(_ text: String) throws(StoreError) {
    let write = { ProgramOutput.write(text) }
    guard let failure = progressLine.withLock({ $0 }).map({ $0.hidden(write) }) ?? write() else { return }
    guard let complaint = failure.ending.complaint else { _exit(failure.ending.code.rawValue) }
    throw StoreError(.failed, complaint)
  }

  /// The same without throwing: the job ends with the error when `body` returns. Pieces after one that can't be printed are dropped.
  func note(_ text: String) {
    if hasFailed { return }
    do throws(StoreError) {
      try print(text)
    } catch {
      fault.withLock { $0 = error }
    }
  }

  /// Whether a `note(_:)` has failed.
  var hasFailed: Bool { fault.withLock { $0 != nil } }

  /// Prints damage to the structure of the store's file. A file with such damage must not be opened.
  ///
  /// - Returns: the job's outcome for a damaged file; nil for an intact one.
  func refusesPages(
    of directory: String, _ line: (String) -> String = { "the file: \(ShownText.line($0))\n" }
  ) throws(StoreError) -> Outcome? {
    let faults = try LMDBStore.pageFaults(at: directory) { [self] in checked($0, of: $1) }
    pagesAreChecked()
    if faults.isEmpty { return nil }
    for fault in faults { try print(line(fault)) }
    return .failure(
      """
      the structure of the file in \(directory) is damaged (\(StoreTable.counted(UInt64(faults.count), "finding"))); \
      sluice store repair rebuilds it from all readable parts
      """)
  }

  /// Opens a store.
  static func open(_ directory: String, _ access: LMDBStore.Access) throws(StoreError) -> LMDBStore {
    var options = LMDBStore.Options()
    options.access = access
    return try LMDBStore.open(at: directory, options)
  }
}

/// Prints a message for a fault while reading a store, which ends the process. The file is mapped into memory, and the processor faults on a damaged or
/// unreadable page.
enum FaultyPages {
  static func explain() {
    for number in [SIGBUS, SIGSEGV, SIGABRT] {
      _ = signal(number) { _ in
        // A signal handler may make only system calls.
        let message: StaticString =
          "sluice: the structure of the store's file is damaged, and reading can't continue; restore a backup\n"
        _ = unsafe Glibc.write(STDERR_FILENO, message.utf8Start, message.utf8CodeUnitCount)
        _exit(ExitCode.failure.rawValue)
      }
    }
  }
}
