import Glibc
import SluiceIO

/// How a stream ends: what was written is sent first, for as long as the peer takes some of it.
extension TLSStream {
  func close() {
    precondition(shared.loop.isCurrent, "a stream is used on its loop")
    switch state {
    case .idle, .handshaking, .writeFailed: break
    case .open: engine?.sayGoodbye()
    case .closing, .gone: return
    }
    engine?.flush()
    end()
  }

  func abort() {
    precondition(shared.loop.isCurrent, "a stream is used on its loop")
    guard state != .gone else { return }
    transport.abort()
    leave()
  }

  /// All of it is out.
  func finishClosing() {
    transport.close()
    leave()
  }

  /// Gives up on a peer that takes nothing any more.
  private func giveUpLater(unsent: Int) {
    _ = shared.loop.schedule(after: shared.patience) { [weak self] in
      guard let self, case .closing = state, let engine else { return }
      if engine.unsentCount < unsent { giveUpLater(unsent: engine.unsentCount) } else { abort() }
    }
  }

  func throwAwayInput() {
    let buffer = unsafe shared.staging
    for _ in 0..<16 {
      switch unsafe transport.read(into: buffer) {
      case .bytes: continue
      case .wouldBlock, .end: return
      case .failed: return leave()
      }
    }
  }

  /// The connection is gone, which the result of the write reports: the handler gets no more calls.
  func loseWriting(_ error: IOError) -> IOError {
    state = .writeFailed
    updateTransport()
    release()
    return error
  }

  func fail(_ error: IOError) {
    guard state != .gone else { return }
    let handler = handler
    let completion = completion
    end()
    handler?.streamFailed(error)
    completion?(.failure(error))
  }

  /// Closes the transport once its pending output is sent: the end of it may contain the reason.
  func end() {
    guard let engine, !engine.isClear, engine.failure == nil else {
      transport.close()
      return leave()
    }
    state = .closing
    updateTransport()
    giveUpLater(unsent: engine.unsentCount)
    release()
  }

  func leave() {
    state = .gone
    engine = nil
    release()
  }

  /// Last in whatever calls it: the handler's end may call the stream.
  private func release() {
    let releasedHandler = handler
    let releasedCompletion = completion
    handler = nil
    completion = nil
    _ = (consume releasedHandler, consume releasedCompletion)
  }
}
