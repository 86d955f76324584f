import SluiceIO

/// The state of reading from OpenSSL.
struct TLSReading {
  /// The peer has said its last word, and it was read.
  private(set) var hasEnded = false
  /// The result after the bytes that were delivered, to be reported next.
  private var ending: ReadResult?
  /// OpenSSL has nothing more to give before the transport has.
  private var isDrained = false

  /// The transport has reported something.
  mutating func transportHasMore() { isDrained = false }

  /// Whether there is something to hand out that the transport won't report.
  func hasMore(_ engine: TLSEngine) -> Bool {
    if hasEnded { return false }
    return ending != nil || engine.failure != nil || (!isDrained && (engine.wasCut || engine.hasBuffered))
  }

  /// Reads into a buffer that isn't empty, unless the peer has ended.
  ///
  /// - Parameter peer: for messages.
  mutating func read(
    _ engine: TLSEngine, into buffer: UnsafeMutableRawBufferPointer, from peer: SocketAddress
  ) -> ReadResult {
    let result = unsafe ending ?? decrypt(engine, into: buffer, from: peer)
    switch result {
    case .bytes, .wouldBlock: break
    case .end:
      hasEnded = true
      ending = nil
    case .failed: ending = nil
    }
    return result
  }

  private mutating func decrypt(
    _ engine: TLSEngine, into buffer: UnsafeMutableRawBufferPointer, from peer: SocketAddress
  ) -> ReadResult {
    engine.begin(expecting: buffer.count)
    var total = 0
    var result = ReadResult.wouldBlock
    isDrained = false
    reading: while total < buffer.count {
      switch unsafe engine.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[total...])) {
      case .done(let count): total += count
      case .needsInput:
        isDrained = !engine.wasCut
        // The transport reports nothing more.
        if let error = engine.writeFailure { result = .failed(error) }
        break reading
      case .ended:
        result = .end
        break reading
      case .failed(let fault):
        result = .failed(fault.error("read from \(peer)", inHandshake: false))
        break reading
      }
    }
    // Reading may have answered something.
    engine.flush()
    if total == 0 { return result }
    if result != .wouldBlock { ending = result }
    return .bytes(total)
  }
}
