import SluiceWebSocket

/// State that a loop's connections with compression share. It is created with the first of them.
///
/// On its loop only.
// @unchecked: belongs to its loop. Other threads only look it up.
final class WebSocketCompression: @unchecked Sendable {
  let inflaters = InflaterPool()
  /// By window size, which a client may limit.
  private var packers: [Int: WebSocketPacker] = [:]

  /// Returns the packer for connections with these terms.
  func packer(_ terms: WebSocketCompressionTerms) -> WebSocketPacker {
    let packer = packers[terms.windowBits] ?? WebSocketPacker(windowBits: terms.windowBits)
    packers[terms.windowBits] = packer
    return packer
  }
}
