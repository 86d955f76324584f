import CXXHash
import SluiceIO
import SluiceWire
import Synchronization

// Dead letters for a topic that another node may own. They are sent one by one with sequence numbers, so that each is stored exactly once even if a node
// fails.
extension Group {
  /// The producer ID of the group in the dead-letter topic. A recreated group has another seed, so another ID.
  var deadLetterProducer: UInt64 {
    let text = Array("\(epoch.number) \(name) \(topic.name)".utf8)
    return max(unsafe text.withUnsafeBytes { unsafe xxh3_64bits($0.baseAddress, $0.count, seed) }, 1)
  }

  /// Queries which dead letters the topic has, and sends the others. On `loop`, without the lock.
  func openDeadLetters(_ route: any DeadLetterRoute, on loop: any GroupLoop) {
    let first = core.withLock { $0.state.outbox.next }
    // The group keeps its topic alive while a call is in progress.
    route.open(
      settings.deadLetters, producer: deadLetterProducer, from: first, durably: topic.isDurable
    ) { [weak self, unowned loop, topic] result in
      guard let self, !topic.isGone else { return }
      switch result {
      case .success(let next):
        step(on: loop) { core in
          core.state.deadLettersKept(before: next)
          core.deadLetters.isOpen = true
        }
        sendDeadLetters(on: loop)
      case .failure(let error): deadLetterFailed(error, route, on: loop)
      }
    }
  }

  /// Assigns the next sequence to a record, and sends the record with it. On `loop`, without the lock.
  func sendNumbered(
    _ deadLetter: BatchBuilder, offset: UInt64, _ route: any DeadLetterRoute, on loop: any GroupLoop
  ) {
    step(on: loop) { core in core.state.numberDeadLetter(offset) }
    guard topic.isDurable else { return sendStored(deadLetter, offset: offset, route, on: loop) }
    storeSoon()
    topic.storeGroup(self) { [weak self, unowned loop, topic] fault in
      guard let self else { return }
      loop.loop.execute { [self] in
        if topic.isGone { return }
        if let fault { return deadLetterFailed(WireError(fault), route, on: loop) }
        sendStored(deadLetter, offset: offset, route, on: loop)
      }
    }
  }

  private func sendStored(
    _ deadLetter: BatchBuilder, offset: UInt64, _ route: any DeadLetterRoute, on loop: any GroupLoop
  ) {
    let sequence = core.withLock { $0.state.outbox.next }
    route.send(
      deadLetter, to: settings.deadLetters, producer: deadLetterProducer, sequence: sequence,
      durably: topic.isDurable
    ) { [weak self, unowned loop, topic] error in
      guard let self, !topic.isGone else { return }
      if let error { return deadLetterFailed(error, route, on: loop) }
      step(on: loop) { core in
        core.state.deadLetterDone(offset, isKept: true)
        core.deadLetters.delay = DeadLetterProgress.firstDelay
      }
      sendDeadLetters(on: loop)
    }
  }

  /// Retries later: it isn't certain whether the topic has the record with the current sequence.
  private func deadLetterFailed(_ error: WireError, _ route: any DeadLetterRoute, on loop: any GroupLoop) {
    core.withLock { $0.deadLetters.isOpen = false }
    route.close(producer: deadLetterProducer)
    // A topic that moves to another node is soon available again.
    if error.code != .topicMoved { reportRefusal(error, on: loop) }
    sendDeadLettersLater(on: loop)
  }
}
