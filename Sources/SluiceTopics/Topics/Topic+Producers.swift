import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// The number of a topic's producers, and the failure of a topic that has lost them.
extension Topic {
  /// The number of attached publications.
  package var producerCount: UInt32 { state.withLock { UInt32(clamping: $0.budget.publications) } }

  /// How many records the topic has of a producer with an ID; nil for an unknown one.
  package func received(from producer: UInt64) -> UInt64? {
    producer == 0 ? nil : state.withLock { $0.producers.next(of: producer) }
  }

  /// Registers or unregisters a subscription that is notified of the number of publications.
  func watchProducers(_ isWatching: Bool) {
    state.withLock { $0.producerWatchers += isWatching ? 1 : -1 }
  }

  /// For how long the topic has been without producers, in milliseconds, at least 1; 0 while it has producers, including those that wait for the store, and
  /// if it never had any.
  package func timeWithoutProducers(now: MonotonicTime) -> UInt64 {
    if waitingForStorage > 0 { return 0 }
    return state.withLock { state in
      guard state.epoch.condition == .open, let since = state.producersLostAt else { return 0 }
      return max((now - since).clampedMilliseconds, 1)
    }
  }

  /// Starts a timer that fails the topic when its producers have been lost for as long as its setting allows. Does nothing if they aren't lost, or if the
  /// timer already runs. On that loop.
  package func failWhenProducersStayLost(on loop: TopicLoop) {
    guard case .fail = settings.whenProducerLost else { return }
    let deadline: MonotonicTime? = state.withLock { state in
      guard !state.isLossTimed, let deadline = producerDeadline(state) else { return nil }
      state.isLossTimed = true
      return deadline
    }
    guard let deadline else { return }
    _ = loop.loop.schedule(after: max(deadline - loop.loop.now, .zero)) { [weak self, weak loop] in
      guard let self, let loop, loop.isServing else { return }
      failIfProducersAreLost(on: loop)
    }
  }

  /// The time at which the topic fails; nil while its producers aren't lost. With the lock held.
  private func producerDeadline(_ state: State) -> MonotonicTime? {
    guard case .fail(let patience) = settings.whenProducerLost, Self.refusal(state, state.epoch, name) == nil,
      var since = state.producersLostAt
    else { return nil }
    if settings.scope == .whileConnected {
      guard let first = state.firstSubscribedAt, state.presentSubscriptions > 0 else { return nil }
      since = max(since, first)
    }
    return since + .milliseconds(Int64(patience))
  }

  /// Ends the topic if its producers are still lost. The check and the end are one step, so that no producer opens a publication in between.
  private func failIfProducersAreLost(on loop: TopicLoop) {
    guard case .fail(let patience) = settings.whenProducerLost else { return }
    let time = Duration.milliseconds(Int64(patience))
    let message =
      "topic \(name) has had no producer for \(time), which is as long as its setting when-producer-lost allows"
    let loopStates: [TopicLoopState]? = state.withLock { state in
      state.isLossTimed = false
      guard let deadline = producerDeadline(state), deadline <= loop.loop.now else { return nil }
      return end(.failure(code: .producerLost, message: message), &state)
    }
    // A producer was attached meanwhile, so the present loss began later.
    guard let loopStates else { return failWhenProducersStayLost(on: loop) }
    notify(loopStates)
    commit(within: .zero)
    loop.registry.host.report(.producerLost(topic: name))
  }

  /// Counts the producers of a restored topic as lost from `now`, the broker's start: they must attach again.
  func restored(now: MonotonicTime) {
    state.withLock { state in
      guard state.epoch.condition == .open, state.nextOffset > 0 else { return }
      state.producersLostAt = now
    }
  }
}
