import SluiceWebSocket

/// What all WebSockets have in common: how they are opened, and what those with compression share.
///
/// From any thread.
final class WebSocketDoor: Sendable {
  let upgrade: WebSocketUpgrade
  /// What the connections with compression on a loop share.
  let compression = LoopTable<WebSocketCompression>()

  init(_ upgrade: WebSocketUpgrade) {
    self.upgrade = upgrade
  }
}
