import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

// Attaching and detaching streams. Subscribers connect a topic, or a request does; the topic may start over when the last subscriber leaves.
extension Topic {
  /// Attaches a subscription. Returns the epoch that it reads and, for the first subscription, the offset of the first buffered record; nil for later
  /// subscriptions and without buffering.
  ///
  /// Before the call, the caller's loop state protects all records, so that none is dropped before the loop state's first report.
  package func attachSubscription(now: MonotonicTime) -> (epoch: TopicEpoch, buffered: UInt64?) {
    let (result, loopStates): ((TopicEpoch, UInt64?), [TopicLoopState]) = state.withLock { state in
      let isFirst = state.presentSubscriptions == 0
      state.subscriptions += 1
      state.presentSubscriptions += 1
      state.firstSubscribedAt = state.firstSubscribedAt ?? now
      state.unusedSince = nil
      let hasChanged = updateConnection(&state)
      let isBuffered = isFirst && isPaced && settings.withoutSubscribers == .buffer
      let buffered = isBuffered ? state.lastSubscriberOffset : nil
      return ((state.epoch, buffered), hasChanged ? state.loopStates : [])
    }
    notify(loopStates)
    return result
  }

  /// Counts a subscription of this loop to the topic, unless `body`, which adds it to the loop state, throws.
  package func withSubscription(
    on loop: TopicLoop,
    _ body: (_ loopState: TopicLoopState, _ epoch: TopicEpoch, _ buffered: UInt64?) throws(WireError) -> Void
  ) throws(WireError) {
    let loopState = loopState(on: loop)
    if isPaced { loopState.protectEverything() }
    let (epoch, buffered) = attachSubscription(now: loop.loop.now)
    do {
      try body(loopState, epoch, buffered)
    } catch {
      loopState.withdraw(from: epoch)
      throw error
    }
    // The topic may have been deleted or moved after the epoch was read and before the loop state was listed.
    if isGone { notify([loopState]) }
  }

  /// The offset at which the first subscriber would begin with buffered records; nil if the topic has a subscriber or doesn't buffer.
  package var bufferedFrom: UInt64? {
    guard isPaced, settings.withoutSubscribers == .buffer else { return nil }
    return state.withLock { $0.unreadFrom }
  }

  /// Detaches a subscription.
  ///
  /// - Parameters:
  ///   - epoch: the epoch to which it was attached.
  ///   - undone: the offset of the first buffered record if it was the last subscription; nil for the head.
  func detachSubscription(from epoch: TopicEpoch, undone: UInt64? = nil) {
    let loopStates: [TopicLoopState] = state.withLock { state in
      state.subscriptions -= 1
      // Leaving an earlier epoch doesn't affect the present one.
      guard epoch === state.epoch else { return isPaced ? state.loopStates : [] }
      state.presentSubscriptions -= 1
      var hasChanged = updateConnection(&state)
      if state.presentSubscriptions == 0 {
        state.firstSubscribedAt = nil
        let head = state.epoch.log.head
        // Records that were trimmed meanwhile aren't buffered for the next subscriber.
        state.lastSubscriberOffset =
          undone.map { min(max($0, state.epoch.floor(for: .returning)), head) } ?? head
        if settings.scope == .whileConnected, !state.isGone {
          startOver(&state)
          hasChanged = true
        }
      }
      return hasChanged || isPaced ? state.loopStates : []
    }
    notify(loopStates)
  }

  /// The result of attaching a publication.
  package struct Attachment {
    package var epoch: TopicEpoch
    /// Nil for a producer without an ID.
    package var ticket: ProducerTable.Ticket?
    /// The sequence of the first record that isn't in the log yet.
    package var nextSequence: UInt64
    /// Whether this producer has ended the topic: it may only repeat COMPLETE.
    package var hasEnded: Bool
  }

  /// Attaches a publication. The former holder of the producer's ID is notified that its ticket is no longer valid.
  ///
  /// - Parameter account: the account that a new producer is charged to; nil for the broker's own.
  /// - Throws: the reason why nothing can be published, or nothing by this producer.
  package func attachPublication(
    _ frame: PublishOpen, _ holder: ProducerTable.Holder, by account: KeptAccount? = nil, now: MonotonicTime
  ) throws(WireError) -> Attachment {
    var watched: [TopicLoopState] = []
    let (result, former): (Result<Attachment, WireError>, ProducerTable.FormerHolder?) = state.withLock {
      state in
      let hasEnded = state.isEnded(by: frame.producer)
      if !hasEnded, let fault = Self.refusal(state, state.epoch, name) {
        return (.failure(WireError(fault)), nil)
      }
      var attachment = Attachment(
        epoch: state.epoch, nextSequence: frame.firstSequence, hasEnded: hasEnded)
      var former: ProducerTable.FormerHolder?
      if frame.producer != 0 {
        switch state.producers.open(
          frame.producer, from: frame.firstSequence, holder, by: keeper(account), now: now)
        {
        case .opened(let ticket, let next, let before):
          attachment.ticket = ticket
          attachment.nextSequence = next
          former = before
        case .fenced:
          let fault = Fault.fenced(on: name)
          return (.failure(WireError(fault)), nil)
        case .noMemory(let refusal): return (.failure(refusal), nil)
        case .full(let limit):
          let message = "topic \(name) has \(limit) producers attached, which is its limit; detach some"
          return (.failure(WireError(.limitReached, message)), nil)
        }
      }
      state.budget.open()
      state.producersLostAt = nil
      if state.producerWatchers > 0 { watched = state.loopStates }
      state.unusedSince = nil
      return (.success(attachment), former)
    }
    former?.notify()
    notify(watched)
    return try result.get()
  }

  /// Detaches a publication and returns its unused grants. The topic keeps its producer for a while.
  ///
  /// - Parameter hasCompleted: whether it has ended the topic, so that its producer doesn't count as lost.
  func detachPublication(
    returning held: PublishingBudget.Allowance, _ ticket: ProducerTable.Ticket?, hasCompleted: Bool = false,
    now: MonotonicTime
  ) {
    var watched: [TopicLoopState] = []
    let (loopStates, wasLong): ([TopicLoopState], Bool) = state.withLock { state in
      state.budget.close(returning: held)
      if state.budget.publications == 0, !hasCompleted { state.producersLostAt = now }
      if state.producerWatchers > 0 { watched = state.loopStates }
      // The other publications request grants below, and find out then whether they are stopped.
      let wasLong = isMetered || state.budget.publications == 0 ? change(hold: nil, &state, at: now) : false
      if let ticket { state.producers.close(ticket, now: now) }
      return (isMetered ? state.loopStates : [], wasLong)
    }
    notify(watched)
    if wasLong { countHolds() }
    // The shares of the remaining publications have grown.
    for loopState in loopStates { loopState.wakeProducers() }
  }

  /// The number of attached streams on all loops together.
  package var attached: (subscriptions: Int, publications: Int) {
    state.withLock { ($0.subscriptions, $0.budget.publications) }
  }

  // MARK: Connection

  package var isConnected: Bool { state.withLock { $0.isConnected } }

  /// Connects or disconnects the topic by request.
  ///
  /// - Throws: ``ErrorCode/unsupported`` unless the topic's setting is manual connection.
  package func connect(_ isConnected: Bool) throws(WireError) {
    guard settings.connect == .manual else {
      throw WireError(
        .unsupported,
        "topic \(name) connects by itself; to connect it by request, create it with connect manual")
    }
    let loopStates = state.withLock { state in
      state.isConnected = isConnected
      return state.loopStates
    }
    notify(loopStates)
  }

  /// - Returns: whether ``isConnected`` has changed.
  private func updateConnection(_ state: inout State) -> Bool {
    let before = state.isConnected
    switch settings.connect {
    case .auto(let count):
      if state.presentSubscriptions >= Int(count) { state.isConnected = true }
      if state.presentSubscriptions == 0 { state.isConnected = false }
    case .autoStay(let count):
      if state.presentSubscriptions >= Int(count) { state.isConnected = true }
    case .immediate, .manual, nil: return false
    }
    return state.isConnected != before
  }

  /// Whether sources publish a new run to each epoch of the topic. When such a topic starts over, the broker ends their publications.
  package var startsSourcesAnew: Bool {
    let settings = settings
    guard settings.scope == .whileConnected else { return false }
    return switch settings.connect {
    case .auto, .autoStay: true
    case .immediate, .manual, nil: false
    }
  }

  // MARK: Automatic deletion

  /// Restarts the time after which an unused topic is deleted, because a stream is about to attach.
  func reserve() {
    guard settings.autoDelete == true else { return }
    state.withLock { $0.unusedSince = nil }
  }

  /// Notes whether the topic has attached streams. Called periodically.
  ///
  /// - Returns: true if it has had none for at least `patience` and must be deleted.
  func isAbandoned(for patience: Duration, now: MonotonicTime) -> Bool {
    state.withLock { state in
      guard state.subscriptions == 0, state.budget.publications == 0, state.departure == nil else {
        state.unusedSince = nil
        return false
      }
      guard let since = state.unusedSince else {
        state.unusedSince = now
        return false
      }
      return now - since >= patience
    }
  }
}

extension Fault {
  package static func noResponders(on topic: String) -> Fault {
    Fault(
      code: .noResponders,
      message:
        "no subscriber is attached to topic \(topic), so nothing can reply; start one that replies, then ask again"
    )
  }

  package static func topicDeleted(_ topic: String) -> Fault {
    Fault(code: .topicDeleted, message: "topic \(topic) was deleted")
  }

  package static func fenced(on topic: String) -> Fault {
    Fault(
      code: .producerFenced,
      message:
        "another publication to \(topic) was opened with this producer ID, which ends this one"
    )
  }

  package static func startedOver(_ topic: String) -> Fault {
    Fault(
      code: .epochChanged,
      message: "topic \(topic) has started over; open the publication again to publish to its next epoch")
  }
}
