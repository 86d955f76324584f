import SluiceIO
import Synchronization

/// What there is once for each loop: made when a connection on the loop needs it first, and kept. From any thread.
final class LoopTable<Value: AnyObject & Sendable>: Sendable {
  private let values = Mutex<[ObjectIdentifier: Value]>([:])

  /// That of a loop, which is made if there is none.
  func find(_ loop: any EventLoop, _ make: () -> Value) -> Value {
    values.withLock { values in
      let found = values[ObjectIdentifier(loop)] ?? make()
      values[ObjectIdentifier(loop)] = found
      return found
    }
  }
}
