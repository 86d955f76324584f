import SluiceIO
import SluiceNATS
import SluiceStore

/// Finds out the results of commits that are unknown to a shard's store, as ``OutcomeResolution`` decides: writes a barrier, and reads the stored messages.
extension EngineStore {
  /// Begins the resolution: it is unknown which commits are stored, or one isn't stored that should be.
  func lost(_ error: NATSError) {
    guard mode == .open || mode == .checkpointing else { return }
    if options.flaw == .blindRetry, mode == .open {
      pipeline.returnSent()
      _ = loop.schedule(after: .milliseconds(50)) { [weak self] in self?.pump() }
      return
    }
    mode = .resolving
    checkpoint = nil
    if let reported = resolution.begin(error) { events(.delayed(reported)) }
    writeBarrier()
  }

  private func writeBarrier() {
    guard mode == .resolving else { return }
    stream.write(fence.message(.barrier), expecting: pipeline.last, within: options.barrierTimeout) {
      [self] result in
      guard mode == .resolving else { return }
      perform(
        resolution.barrierAnswered(result, last: pipeline.last, isAllRefused: pipeline.isAllRefused))
    }
  }

  private func perform(_ action: OutcomeResolution.Action) {
    switch action {
    case .resume(let barrier):
      if let barrier {
        fence.raised(at: barrier)
        pipeline.learned(through: barrier)
      }
      resume()
    case .read(let sequence): readBehind(from: sequence)
    case .retry(let error):
      if let error { events(.delayed(error)) }
      loop.cancel(&retryTimer)
      retryTimer = loop.schedule(after: .milliseconds(50)) { [weak self] in
        self?.retryTimer = nil
        self?.writeBarrier()
      }
    }
  }

  /// Continues after the resolution: none of the commits sent is stored. A commit for which there is no space fails, and with it all later ones.
  private func resume() {
    let end = resolution.end()
    pipeline.returnSent()
    topics.unsent(pipeline.waiting)
    mode = .open
    if end.wasDelayed { events(.resumed) }
    if let refusal = end.refusal {
      checkpoints.refused()
      return fail(refusal)
    }
    pump()
  }

  /// Reads the messages behind the last known sequence.
  private func readBehind(from sequence: UInt64) {
    var fault: StoreError?
    var end = sequence - 1
    let each: (StoredMessageView) -> Void = { [self] message in
      guard fault == nil, mode == .resolving else { return }
      do throws(StoreError) {
        switch try unsafe fence.take(message.payload.memory, at: message.sequence) {
        case .otherOwner: throw fencedError
        case .commit(let number): pipeline.found(number, at: message.sequence)
        case .nothing: break
        }
        end = message.sequence
      } catch {
        fault = error
      }
    }
    let done: (Swift.Result<ReadPage, NATSError>) -> Void = { [self] result in
      guard mode == .resolving else { return }
      if let fault { return fault.kind == .fenced ? fenced() : perform(resolution.readFailed(fault)) }
      if case .success = result {
        settleStored()
        pipeline.learned(through: end)
      }
      perform(resolution.read(result.map(\.pending), through: end))
    }
    stream.read(names.all, from: sequence, count: 256, maximumBytes: 4 << 20, each: each, done)
  }
}
