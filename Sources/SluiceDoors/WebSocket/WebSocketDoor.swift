import SluiceIO
import SluiceWebSocket
import Synchronization

/// What all WebSockets have in common: how they are opened, and what those with compression share.
///
/// From any thread.
final class WebSocketDoor: Sendable {
  let upgrade: WebSocketUpgrade
  private let loops = Mutex<[ObjectIdentifier: WebSocketCompression]>([:])

  init(_ upgrade: WebSocketUpgrade) {
    self.upgrade = upgrade
  }

  /// What the connections with compression on that loop share.
  func compression(on loop: any EventLoop) -> WebSocketCompression {
    loops.withLock { loops in
      let found = loops[ObjectIdentifier(loop)] ?? WebSocketCompression()
      loops[ObjectIdentifier(loop)] = found
      return found
    }
  }
}
