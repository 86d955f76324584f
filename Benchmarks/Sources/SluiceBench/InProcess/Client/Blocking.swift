import Dispatch
import Synchronization

/// Waits for a task on a thread that has no other work.
enum Blocking {
  static func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let outcome = Outcome<Value>()
    Task {
      do {
        let value = try await body()
        outcome.set(.success(value))
      } catch {
        outcome.set(.failure(error))
      }
    }
    return try outcome.get()
  }

  private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    func set(_ value: Result<Value, any Error>) {
      result.withLock { $0 = value }
      semaphore.signal()
    }

    func get() throws -> Value {
      semaphore.wait()
      guard let result = result.withLock({ $0 }) else { throw BenchError("a task ended without a result") }
      return try result.get()
    }
  }
}
