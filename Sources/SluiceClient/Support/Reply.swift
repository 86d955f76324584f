import Synchronization

/// A result that one task awaits, which may be cancelled meanwhile.
final class Reply<Value: Sendable>: Sendable {
  private enum State {
    case pending
    case awaited(CheckedContinuation<Result<Value, ClientError>, Never>)
    case completed(Result<Value, ClientError>)
    case over
  }

  private let state = Mutex(State.pending)

  /// Calls `body` with a completion, and awaits its result. See ``value(onCancel:)``.
  static func wait(
    for body: (@escaping @Sendable (Result<Value, ClientError>) -> Void) -> Void
  ) async throws(ClientError) -> Value {
    let reply = Reply()
    body(reply.complete)
    return try await reply.value()
  }

  /// Sets the result. From any thread; later calls have no effect.
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

  /// Awaits the result, once.
  ///
  /// - Parameter cancelled: called when the task is cancelled, immediately if it is cancelled already.
  /// - Throws: the result's error; ``ClientError/Code/cancelled`` if the task is cancelled first.
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
