import Glibc
import SluiceCommand
import SluiceIO
import SluiceStore
import SluiceStoreLMDB
import SluiceWire
import Synchronization

/// A job on a store. Runs on a thread of its own, since disks block.
final class StoreJob: Sendable {
  /// How it ended.
  enum Outcome: Sendable {
    case success
    /// With a complaint for standard error.
    case failure(String)
  }

  /// How often progress is printed with `--progress`. Without it, there is a line on a terminal.
  private static let interval = Duration.seconds(1)

  private let done = Atomic<UInt64>(0)
  private let total: Atomic<UInt64> = Atomic(0)
  /// Bytes of the store's file; 0 before its pages are checked.
  private let fileBytes: Atomic<UInt64> = Atomic(0)
  /// What the phases before the present one have done.
  private let base: Atomic<UInt64> = Atomic(0)
  private let stopped = Atomic(false)
  private let watched = Mutex<String?>(nil)
  /// The line that shows progress; nil where there is no terminal.
  private let progressLine = Mutex<TerminalLine?>(nil)
  /// The first piece of the result that couldn't be printed where that doesn't end the job at once.
  private let fault = Mutex<StoreError?>(nil)

  private init() {}

  /// How long an interrupted job may take to stop. The process may end in the middle of it: commits are atomic.
  private static let stopTimeout = Duration.seconds(2)

  /// Runs `body`, and ends the run with what it returns or throws. Ctrl-C stops it at the next safe place.
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

  /// Records progress of the present phase, in bytes. Returns whether to go on.
  func progressed(to bytes: UInt64) -> Bool {
    done.store(base.load(ordering: .relaxed) + bytes, ordering: .relaxed)
    return !isStopped
  }

  /// Has the length of a file stand for the progress of what writes it.
  func watch(_ path: String) {
    watched.withLock { $0 = path }
  }

  /// States about how many bytes the job will read from the present phase on.
  func expect(_ bytes: UInt64) {
    total.store(base.load(ordering: .relaxed) + bytes, ordering: .relaxed)
  }

  /// Records progress of the check of a file's pages, and of what mends them, behind which its records are read: about as many bytes as it has.
  func checked(_ bytes: UInt64, of all: UInt64) -> Bool {
    // The first of these steps goes through the file once.
    if fileBytes.load(ordering: .relaxed) == 0 { fileBytes.store(all, ordering: .relaxed) }
    expect(all + fileBytes.load(ordering: .relaxed))
    return progressed(to: bytes)
  }

  /// Begins the phase behind the check of the pages.
  func pagesAreChecked() {
    base.store(done.load(ordering: .relaxed), ordering: .relaxed)
  }

  /// Prints a piece of the result.
  ///
  /// - Throws: ``StoreError`` when that isn't possible. A reader that wants no more isn't an error: it ends the job quietly.
  func print(_ text: String) throws(StoreError) {
    let write = { ProgramOutput.write(text) }
    guard let failure = progressLine.withLock({ $0 }).map({ $0.hidden(write) }) ?? write() else { return }
    guard let complaint = failure.ending.complaint else { _exit(failure.ending.code.rawValue) }
    throw StoreError(.failed, complaint)
  }

  /// The same where nothing can be thrown: ends the job with the error when `body` returns. Pieces behind one that can't be printed are dropped.
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

  /// Looks for damage to the structure of the store's file, with which it must not be opened, and prints it.
  ///
  /// - Returns: the job's outcome for a damaged file; nil for one in order.
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

  /// Opens a store that there is.
  static func open(_ directory: String, _ access: LMDBStore.Access) throws(StoreError) -> LMDBStore {
    var options = LMDBStore.Options()
    options.access = access
    return try LMDBStore.open(at: directory, options)
  }
}

/// Explains a fault while reading a store, which ends the process: the file is mapped into memory, and the processor faults on a page that the disk can't
/// read or that is damaged.
enum FaultyPages {
  static func explain() {
    for number in [SIGBUS, SIGSEGV, SIGABRT] {
      _ = signal(number) { _ in
        // Nothing but system calls may be made here.
        let message: StaticString =
          "sluice: the structure of the store's file is damaged, and reading can't continue; restore a backup\n"
        _ = unsafe Glibc.write(STDERR_FILENO, message.utf8Start, message.utf8CodeUnitCount)
        _exit(ExitCode.failure.rawValue)
      }
    }
  }
}
