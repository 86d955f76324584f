import Synchronization

/// A result that is waited for once, by a task that may be cancelled meanwhile.
final class Reply<Value: Sendable>: Sendable {
  private enum State {
    case pending
    case awaited(CheckedContinuation<Result<Value, ClientError>, Never>)
    case completed(Result<Value, ClientError>)
    case over
  }

  private let state = Mutex(State.pending)

  /// From any thread; the first call counts.
  func complete(_ result: Result<Value, ClientError>) {
    let continuation: CheckedContinuation<Result<Value, ClientError>, Never>? = state.withLock { state in
      switch state {
      case .pending:
        state = .completed(result)
        return nil
      case .awaited(let continuation):
        state = .over
        return continuation
      case .completed, .over: return nil
      }
    }
    continuation?.resume(returning: result)
  }

  /// Waits, once.
  ///
  /// - Parameter cancelled: called when the task is cancelled, perhaps at once.
  /// - Throws: what it was completed with; ``ClientError/Code/cancelled`` when the task is cancelled first.
  func value(onCancel cancelled: @Sendable () -> Void = {}) async throws(ClientError) -> Value {
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result: Result<Value, ClientError>? = state.withLock { state in
          if case .completed(let result) = state {
            state = .over
            return result
          }
          state = .awaited(continuation)
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      cancelled()
      complete(.failure(.waitCancelled))
    }
    return try result.get()
  }
}

/// A mutex beside the fields that it guards.
///
/// For fields that hold what isn't `Sendable`, subscribers and subscriptions above all, which a `Mutex` of a value wouldn't let out.
struct Guard: ~Copyable {
  private let mutex = Mutex<Void>(())

  /// Runs `body` alone. It must be short and call nothing of the user's, which releasing an object may do too.
  @inline(__always)
  borrowing func locked<Result>(_ body: () -> Result) -> Result {
    var result: Result?
    mutex.withLock { _ in result = body() }
    return unsafe result.unsafelyUnwrapped
  }
}
