import SluiceClient
import Synchronization

/// Waits on a thread of the program's own for what a loop answers.
enum Waiting {
  private final class Answer<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, ClientError>?>(nil)
    let arrived = Semaphore()
  }

  /// Calls `ask` with the callback to answer, and returns the answer. Never on the loop that has to give it.
  static func answer<Value: Sendable>(
    _ ask: (@escaping @Sendable (Result<Value, ClientError>) -> Void) -> Void
  ) throws(ClientError) -> Value {
    let answer = Answer<Value>()
    ask { result in
      answer.result.withLock { $0 = result }
      answer.arrived.signal()
    }
    while true {
      answer.arrived.wait()
      if let result = answer.result.withLock({ $0 }) { return try result.get() }
    }
  }
}
