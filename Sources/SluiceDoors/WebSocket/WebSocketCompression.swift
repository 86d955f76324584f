import SluiceWebSocket

/// What the connections with compression on a loop share. It is made with the first of them.
///
/// On its loop only.
// @unchecked: belongs to its loop. Other threads only look it up.
final class WebSocketCompression: @unchecked Sendable {
  let inflaters = InflaterPool()
  /// By the size of their windows, which a client may limit.
  private var packers: [Int: WebSocketPacker] = [:]

  /// The one for connections with those terms.
  func packer(_ terms: WebSocketCompressionTerms) -> WebSocketPacker {
    let packer = packers[terms.windowBits] ?? WebSocketPacker(windowBits: terms.windowBits)
    packers[terms.windowBits] = packer
    return packer
  }
}
