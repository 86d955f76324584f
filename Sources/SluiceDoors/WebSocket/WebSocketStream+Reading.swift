import Glibc
import SluiceIO
import SluiceWebSocket

// Reads the bytes of the client's messages.
extension WebSocketStream {
  /// Bytes to read at a time if messages are compressed.
  private static let compressedRead = 16_384

  func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    switch state {
    case .idle, .opening: return .wouldBlock
    case .closing, .gone: return .failed(IOError(action: "read from \(peer)", code: EBADF))
    case .open: break
    }
    if let ending {
      self.ending = nil
      if case .failed = ending { leave() }
      return ending
    }
    if isEnded { return .end }
    guard unsafe !buffer.isEmpty else { return .wouldBlock }
    if inbox.isCompressed { return unsafe readCompressed(into: buffer) }
    let count: Int
    if inbox.hasEarly {
      count = unsafe inbox.takeEarly(into: buffer)
      if inbox.hasEarly { comeRound() }
    } else {
      switch unsafe transport.read(into: buffer) {
      case .bytes(let read): count = read
      case let other: return transportEnded(other)
      }
    }
    var answers: [UInt8] = []
    let (read, end) = unsafe inbox.unpack(
      UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), answers: &answers)
    return finish(read, end, answers)
  }

  private func readCompressed(into buffer: UnsafeMutableRawBufferPointer) -> ReadResult {
    var answers: [UInt8] = []
    if inbox.hasEarly {
      let none = unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)
      let (read, end) = unsafe inbox.inflate(none, into: buffer, answers: &answers)
      if inbox.hasEarly, end == nil { comeRound() }
      return finish(read, end, answers)
    }
    // No more than the reader has room for: data seldom shrinks when it is inflated.
    let size = min(buffer.count, Self.compressedRead)
    return unsafe withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { chunk in
      switch unsafe transport.read(into: chunk) {
      case .bytes(let count):
        let bytes = unsafe UnsafeMutableRawBufferPointer(rebasing: chunk[..<count])
        let (read, end) = unsafe inbox.inflate(bytes, into: buffer, answers: &answers)
        if inbox.hasEarly, end == nil { comeRound() }
        return finish(read, end, answers)
      case let other: return transportEnded(other)
      }
    }
  }

  /// The transport had nothing to read.
  private func transportEnded(_ result: ReadResult) -> ReadResult {
    switch result {
    case .end: isEnded = true
    case .failed:
      state = .gone
      release()
    case .wouldBlock, .bytes: break
    }
    return result
  }

  /// Sends the answers to control frames, and returns the result of the read.
  private func finish(_ count: Int, _ end: WebSocketEnding?, _ answers: [UInt8]) -> ReadResult {
    if !answers.isEmpty { outbox.append(control: answers) }
    if let end {
      isEnded = true
      updateTransport()
      sendOutput()
      let result = ReadResult(end, at: peer)
      guard count > 0 else {
        if case .failed = result { leave() }
        return result
      }
      ending = result
      comeRound()
      return .bytes(count)
    }
    if outbox.controlBytes > 0 { sendOutput() }
    return count > 0 ? .bytes(count) : .wouldBlock
  }

  /// Whether there are bytes to read that the transport won't report.
  var hasMore: Bool { ending != nil || inbox.hasEarly }

  /// Schedules a call of the handler in the next turn.
  func comeRound() {
    guard !comesRound else { return }
    comesRound = true
    _ = loop.schedule(at: loop.now) { [weak self] in
      self?.comesRound = false
      self?.handOut()
    }
  }

  func handOut() {
    guard case .open = state, !readsPaused, hasMore else { return }
    handler?.streamReadable()
  }
}
