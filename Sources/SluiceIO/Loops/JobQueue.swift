import Synchronization

/// Jobs that any thread passes to a loop; the loop takes them a batch at a time.
struct JobQueue: ~Copyable {
  typealias Job = @Sendable () -> Void

  struct State {
    var jobs: [Job] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  private let filled = Atomic<Bool>(false)

  /// True when there may be jobs. Sequentially consistent with `append`: a loop that says it sleeps and then finds this
  /// false will be woken by the next append.
  var hasJobs: Bool { filled.load(ordering: .sequentiallyConsistent) }

  /// From any thread. Returns false when the queue is closed; the job is dropped.
  func append(_ job: @escaping Job) -> Bool {
    let accepted = state.withLock { state in
      if state.isClosed { return false }
      state.jobs.append(job)
      return true
    }
    if accepted { filled.store(true, ordering: .sequentiallyConsistent) }
    return accepted
  }

  /// Exchanges the jobs that have come for `batch`, which must be empty: its memory takes the next ones.
  func take(into batch: inout [Job]) {
    guard filled.load(ordering: .relaxed) else { return }
    filled.store(false, ordering: .sequentiallyConsistent)
    state.withLock { state in swap(&state.jobs, &batch) }
  }

  /// Refuses all later jobs. Returns those that were waiting, for the caller to release.
  func close() -> [Job] {
    state.withLock { state in
      state.isClosed = true
      let jobs = state.jobs
      state.jobs = []
      return jobs
    }
  }
}
