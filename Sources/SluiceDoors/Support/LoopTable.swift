import SluiceIO
import Synchronization

/// One value per loop, created when a connection on the loop first needs it, and kept. Usable from any thread.
final class LoopTable<Value: AnyObject & Sendable>: Sendable {
  private let values = Mutex<[ObjectIdentifier: Value]>([:])

  /// Returns the loop's value, and creates it if there is none.
  func find(_ loop: any EventLoop, _ make: () -> Value) -> Value {
    values.withLock { values in
      let found = values[ObjectIdentifier(loop)] ?? make()
      values[ObjectIdentifier(loop)] = found
      return found
    }
  }
}
