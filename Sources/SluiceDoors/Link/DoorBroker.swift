import SluiceIO
import Synchronization

/// Gives gateway parts that connect on their own, such as sessions, wills and group members, access to the broker. Usable from any thread.
final class DoorBroker: Sendable {
  typealias Acceptance = @Sendable (any ByteStream, any EventLoop) -> Void

  private let state = Mutex<Acceptance?>(nil)

  /// Passes an in-memory connection to the broker. Call it on the loop that is its argument. `nil` once the broker's listeners are closed.
  var accept: Acceptance? { state.withLock(\.self) }

  /// Sets ``accept``; nil once the broker's listeners are closed.
  func serve(_ accept: Acceptance?) { state.withLock { $0 = accept } }
}
