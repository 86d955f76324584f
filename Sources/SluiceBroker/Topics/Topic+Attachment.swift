import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

// Who comes and goes, and what that means: a topic is connected by its subscribers, or on demand, and may start over when the last leaves.
extension Topic {
  /// A subscription comes: the life that it reads, and where the first one begins that finds what producers buffered meanwhile.
  ///
  /// The caller has its tap protect everything already, so that nothing is dropped between this and the tap's first report.
  func attachSubscription(now: MonotonicTime) -> (life: TopicLife, buffered: UInt64?) {
    let (result, taps): ((TopicLife, UInt64?), [TopicTap]) = state.withLock { state in
      let isFirst = state.presentSubscriptions == 0
      state.subscriptions += 1
      state.presentSubscriptions += 1
      state.firstSubscribedAt = state.firstSubscribedAt ?? now
      state.unusedSince = nil
      let hasChanged = updateConnection(&state)
      let isBuffered = isFirst && isPaced && settings.whenAlone == .buffer
      return ((state.life, isBuffered ? state.aloneSince : nil), hasChanged ? state.taps : [])
    }
    announce(to: taps)
    return result
  }

  /// Where the first subscriber would begin, for what producers have buffered; nil when there is one, or nothing is buffered.
  var bufferedFrom: UInt64? {
    guard isPaced, settings.whenAlone == .buffer else { return nil }
    return state.withLock { $0.unreadSince }
  }

  /// A subscription leaves.
  ///
  /// - Parameters:
  ///   - life: the one that it was attached to.
  ///   - undone: if it was the last one, what producers buffer begins there, rather than at the head.
  func detachSubscription(from life: TopicLife, undone: UInt64? = nil) {
    let taps: [TopicTap] = state.withLock { state in
      state.subscriptions -= 1
      // A life that is over has no part in what the present one does.
      guard life === state.life else { return isPaced ? state.taps : [] }
      state.presentSubscriptions -= 1
      var isNews = updateConnection(&state)
      if state.presentSubscriptions == 0 {
        state.firstSubscribedAt = nil
        state.aloneSince = min(state.life.log.head, undone ?? .max)
        if settings.scope == .whileConnected, !state.isDeleted {
          startOver(&state)
          isNews = true
        }
      }
      return isNews || isPaced ? state.taps : []
    }
    announce(to: taps)
  }

  /// What a producer is told when it attaches.
  struct Attachment {
    var life: TopicLife
    /// Nil for a producer without a number.
    var ticket: ProducerTable.Ticket?
    /// The sequence of the first record that isn't in the log yet.
    var nextSequence: UInt64
    /// It was this producer that ended the topic: it may say so again, and that is all.
    var hasEnded: Bool
  }

  /// A publication comes. Whoever had the producer's number before is told that it has lost it.
  ///
  /// - Throws: why nothing can be published, or not by this producer.
  func attachPublication(
    _ frame: PublishOpen, _ holder: ProducerTable.Holder, now: MonotonicTime
  ) throws(WireError) -> Attachment {
    var watched: [TopicTap] = []
    let (result, loser): (Result<Attachment, WireError>, ProducerTable.Loser?) = state.withLock { state in
      let hasEnded = state.isEnded(by: frame.producer)
      if !hasEnded, let fault = Self.refusal(state, state.life, name) {
        return (.failure(WireError(fault.code, fault.message)), nil)
      }
      var attachment = Attachment(
        life: state.life, nextSequence: frame.firstSequence, hasEnded: hasEnded)
      var loser: ProducerTable.Loser?
      if frame.producer != 0 {
        switch state.producers.open(frame.producer, from: frame.firstSequence, holder, now: now) {
        case .opened(let ticket, let next, let before):
          attachment.ticket = ticket
          attachment.nextSequence = next
          loser = before
        case .outrun:
          let fault = Fault.fenced(on: name)
          return (.failure(WireError(fault.code, fault.message)), nil)
        case .noMemory:
          let refusal = memory?.kept.refusal
          return (
            .failure(refusal ?? WireError(.limitReached, "there is no memory for another producer")), nil
          )
        case .full(let limit):
          let message = "topic \(name) has \(limit) producers attached, which is its limit; detach some"
          return (.failure(WireError(.limitReached, message)), nil)
        }
      }
      state.publications += 1
      state.producersLostAt = nil
      if state.producerWatchers > 0 { watched = state.taps }
      state.unusedSince = nil
      return (.success(attachment), loser)
    }
    loser?.tell()
    announce(to: watched)
    return try result.get()
  }

  /// A publication leaves, with what it was granted and hasn't used. What is known of its producer is kept for a while.
  ///
  /// - Parameter hasCompleted: whether it has ended the topic, so that it isn't missed.
  func detachPublication(
    returning held: GrantLedger.Allowance, _ ticket: ProducerTable.Ticket?, hasCompleted: Bool = false,
    now: MonotonicTime
  ) {
    var watched: [TopicTap] = []
    let taps: [TopicTap] = state.withLock { state in
      state.publications -= 1
      if state.publications == 0, !hasCompleted { state.producersLostAt = now }
      if state.producerWatchers > 0 { watched = state.taps }
      if let ticket { state.producers.close(ticket, now: now) }
      state.ledger.returned(held)
      return isMetered ? state.taps : []
    }
    announce(to: watched)
    // The others' shares are larger now.
    for tap in taps { tap.wakeProducers() }
  }

  /// How many are attached, on all loops together.
  var attached: (subscriptions: Int, publications: Int) {
    state.withLock { ($0.subscriptions, $0.publications) }
  }

  // MARK: Connection

  var isConnected: Bool { state.withLock { $0.isConnected } }

  /// Connects or disconnects the topic by request.
  ///
  /// - Throws: ``ErrorCode/unsupported`` when the topic's setting leaves that to its subscribers.
  func connect(_ isConnected: Bool) throws(WireError) {
    guard settings.connect == .manual else {
      throw WireError(
        .unsupported,
        "topic \(name) connects by itself; to connect it by request, create it with connect manual")
    }
    let taps = state.withLock { state in
      state.isConnected = isConnected
      return state.taps
    }
    announce(to: taps)
  }

  /// - Returns: whether it is connected now and wasn't before, or the reverse.
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

  /// Whether each life of the topic has runs of its own of the publishers that feed it: sources have to begin anew when it starts over.
  var startsSourcesAnew: Bool {
    let settings = settings
    guard settings.scope == .whileConnected else { return false }
    return switch settings.connect {
    case .auto, .autoStay: true
    case .immediate, .manual, nil: false
    }
  }

  // MARK: Demand

  /// The most that one producer may have at a time.
  var grantWindow: GrantLedger.Allowance {
    GrantLedger.Allowance(records: window, bytes: memory?.window ?? .max)
  }

  /// What a producer gets, on top of what it has. From any loop.
  ///
  /// - Parameter most: what it may get; nil for as much as there is.
  func grant(
    to held: GrantLedger.Allowance, atMost most: GrantLedger.Allowance? = nil
  ) -> GrantLedger.Allowance {
    var window = grantWindow
    if let most {
      var reach = held
      reach.add(most)
      window.records = min(window.records, reach.records)
      window.bytes = min(window.bytes, reach.bytes)
    }
    return state.withLock { state in
      guard state.isConnected, state.setAside == nil, storage?.service.refusal == nil, !isOutOfMemory else {
        return GrantLedger.Allowance()
      }
      guard isMetered else { return state.ledger.grant(to: held, window: window) }
      // Set before the readers are looked at: whoever moves after that look sees it, and wakes us.
      isHeldUp.store(true, ordering: .sequentiallyConsistent)
      return state.ledger.grant(
        to: held, limit: limit(state), producers: state.publications, window: window)
    }
  }

  /// Whether producers wait for memory. What is on disk takes little of it.
  var isOutOfMemory: Bool { storage == nil && memory?.isFull == true }

  /// Whether as much of the topic waits for the disk as may.
  var isBackloggedOnDisk: Bool {
    guard let storage else { return false }
    let waiting = state.withLock { $0.tail?.waitingBytes ?? 0 }
    return storage.service.room(besides: waiting) == 0
  }

  /// How far producers may go: as far as their subscribers let them, and the disk. With the lock held.
  private func limit(_ state: State) -> FlowLimit {
    guard let tail = state.tail, let storage else { return limitByReaders(state, unread: 0, kept: nil) }
    // With `sync` always the log has no more than the disk.
    let unread = storage.isSynchronous ? tail.waitingBytes : 0
    let limit = isPaced ? limitByReaders(state, unread: unread, kept: .max) : .unlimited
    return limit.capped(bytes: UInt64(clamping: storage.service.room(besides: tail.waitingBytes)))
  }

  private func limitByReaders(_ state: State, unread: Int, kept: UInt64?) -> FlowLimit {
    let log = state.life.log
    let situation = FlowSituation(
      head: state.nextOffset, aloneSince: state.unreadSince,
      keptBytes: kept ?? UInt64(log.statistics().bytes), lapsedBytes: lapsedBytes(state),
      bytes: { UInt64(log.bytes(from: $0) + unread) })
    return state.strategy.limit(state.readers, situation)
  }

  /// The subscriptions of some loop have moved, asked for more, or left: producers may go on. From any loop.
  func readersMoved() {
    guard isHeldUp.exchange(false, ordering: .sequentiallyConsistent) else { return }
    wakeProducers()
  }

  /// Producers may go on. From any loop.
  func wakeProducers() {
    for tap in taps { tap.wakeProducers() }
  }
}

extension TopicSettings {
  var retention: Retention {
    func limit(_ value: UInt64?) -> UInt64? { value == Self.unlimited ? nil : value }
    return Retention(
      records: limit(replayRecords), bytes: limit(replayBytes),
      ageMilliseconds: limit(replayAge).map { Int64(clamping: $0) })
  }

  /// These settings, with what they leave open as it is where nothing is said: how much is kept depends on where it is kept.
  var completed: TopicSettings {
    completed(by: BrokerConfiguration.standardTopic(in: storage ?? .memory))
  }
}

extension Fault {
  static func noResponders(on topic: String) -> Fault {
    Fault(
      code: .noResponders,
      message:
        "no subscriber is attached to topic \(topic), so nothing can reply; start one that replies, then ask again"
    )
  }

  static func fenced(on topic: String) -> Fault {
    Fault(
      code: .producerFenced,
      message:
        "another publication to \(topic) has been opened with this producer's number; only the last one goes on"
    )
  }
}
