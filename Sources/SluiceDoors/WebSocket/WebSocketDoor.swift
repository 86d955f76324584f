import SluiceWebSocket

/// State that all WebSockets share: how they are opened, and the memory for compression.
///
/// Usable from any thread.
final class WebSocketDoor: Sendable {
  let upgrade: WebSocketUpgrade
  /// Shared by the connections with compression on a loop.
  let compression = LoopTable<WebSocketCompression>()

  init(_ upgrade: WebSocketUpgrade) {
    self.upgrade = upgrade
  }
}
