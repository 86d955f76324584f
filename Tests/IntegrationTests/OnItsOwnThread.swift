import Synchronization
import TestSupport
import Testing

/// Runs tests on a few separate threads, one test per thread at a time.
///
/// These tests wait in system calls. On Swift's shared threads they would block all other tests.
struct OnItsOwnThread: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
    testCase == nil ? nil : self
  }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
  }
}

extension Trait where Self == OnItsOwnThread {
  static var onItsOwnThread: Self { OnItsOwnThread() }
}

/// Threads that may block. There are more than processors, since the tests mostly wait for processes.
private final class BlockingExecutor: TaskExecutor {
  static let shared = BlockingExecutor(threads: 4)

  private let jobs = Mutex<[UnownedJob]>([])

  init(threads: Int) {
    for _ in 0..<threads {
      _ = BackgroundThread { [self] in
        while true {
          if let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
          } else {
            pause(0.005)
          }
        }
      }
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
  }
}
