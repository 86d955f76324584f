import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// How many producers a topic has, since when it has lost them, and what happens then.
extension Topic {
  /// How many publications are attached.
  var producerCount: UInt32 { state.withLock { UInt32(clamping: $0.budget.publications) } }

  /// A subscription wants to be told how many publications there are, or no longer.
  func watchProducers(_ isWatching: Bool) {
    state.withLock { $0.producerWatchers += isWatching ? 1 : -1 }
  }

  /// For how long the topic has lost its producers, in milliseconds, at least 1; 0 while it hasn't.
  func timeWithoutProducers(now: MonotonicTime) -> UInt64 {
    state.withLock { state in
      guard state.epoch.condition == .open, let since = state.producersLostAt else { return 0 }
      return max((now - since).wholeMilliseconds, 1)
    }
  }

  /// Starts a timer that fails the topic when its producers have been lost for as long as its setting allows. Does nothing while they aren't lost, and
  /// while there is a timer: a topic has one at most. On that loop.
  func failWhenProducersStayLost(on loop: LoopContext) {
    guard case .fail = settings.whenProducerLost else { return }
    let deadline: MonotonicTime? = state.withLock { state in
      guard !state.isLossTimed, let deadline = producerDeadline(state) else { return nil }
      state.isLossTimed = true
      return deadline
    }
    guard let deadline else { return }
    _ = loop.loop.schedule(after: max(deadline - loop.loop.now, .zero)) { [weak self, weak loop] in
      guard let self, let loop, loop.core.stage.load(ordering: .relaxed) == .serving else { return }
      failIfProducersAreLost(on: loop)
    }
  }

  /// When the topic is to fail, as things stand; nil while it isn't. With the lock held.
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
  private func failIfProducersAreLost(on loop: LoopContext) {
    guard case .fail(let patience) = settings.whenProducerLost else { return }
    let time = Duration.milliseconds(Int64(patience))
    let message =
      "topic \(name) has had no producer for \(time), which is as long as its setting when-producer-lost allows"
    let loopStates: [TopicLoopState]? = state.withLock { state in
      state.isLossTimed = false
      guard let deadline = producerDeadline(state), deadline <= loop.loop.now else { return nil }
      return end(.failure(code: .producerLost, message: message), &state)
    }
    // A producer was attached meanwhile, so the time of the present loss ends later.
    guard let loopStates else { return failWhenProducersStayLost(on: loop) }
    notify(loopStates)
    commit(within: .zero)
    loop.core.configuration.report(.topicEnded(nil, topic: name, failure: .producerLost))
  }

  /// The broker has started, and the topic was in its store: producers that were attached before have to come back.
  func restored(now: MonotonicTime) {
    state.withLock { state in
      guard state.epoch.condition == .open, state.nextOffset > 0 else { return }
      state.producersLostAt = now
    }
  }
}
