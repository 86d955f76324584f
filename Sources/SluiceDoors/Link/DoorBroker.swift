import SluiceIO
import Synchronization

/// The broker, for parts of doors that connect to it by themselves: sessions, wills, members of groups. From any thread.
final class DoorBroker: Sendable {
  typealias Acceptance = @Sendable (any ByteStream, any EventLoop) -> Void

  private let state = Mutex<Acceptance?>(nil)

  /// Has the broker serve a connection in memory, on the loop that is named, which the caller is on; nil where it takes none any more.
  var accept: Acceptance? { state.withLock(\.self) }

  /// Sets how, until it is told that there is no broker any more.
  func serve(_ accept: Acceptance?) { state.withLock { $0 = accept } }
}
