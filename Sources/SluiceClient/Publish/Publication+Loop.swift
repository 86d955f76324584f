import ReactiveCore
import SluiceWire

// The publication on the client's loop: passes records to the connection, requests more from upstreams, ends.
extension Publication {
  func opened(on stream: UInt32, at node: DirectLink?) {
    self.stream = stream
    self.node = node
    isOpen = true
  }

  /// Handles a lost or missing connection. Unacknowledged records stay.
  func interrupted() {
    stream = 0
    node = nil
    isOpen = false
    isCompletionSent = false
    isTopicConnected = nil
  }

  /// Requests from the upstreams the records that are granted and unused, as far as there is room.
  func requestMore(granted: UInt64) {
    let requests: [(any Subscription, Int)] = lock.withLock {
      guard case .active = unsafe phase, unsafe !upstreams.isEmpty else { return [] }
      let limits = unsafe queue.limits
      var target = unsafe min(limits.records, Int(clamping: granted)) - queue.count
      target = unsafe min(target, (limits.bytes - queue.byteCount) / queue.averageSize)
      // More than a few frames' worth would leave the processor's caches before it is sent.
      target = unsafe min(target, max(4 * Self.batchSize / queue.averageSize, 64))
      // The first records show how large the next ones will be.
      if unsafe queue.accepted < 16 { target = min(target, 16) }
      // At least one, of any length.
      if unsafe queue.isEmpty, granted > 0 { target = max(target, 1) }
      // In halves, so that not every record costs a request.
      guard target > 0, unsafe promised * 2 <= target else { return [] }
      let wanted = unsafe target - promised
      unsafe promised = target
      let share = unsafe wanted / upstreams.count
      let rest = unsafe wanted % upstreams.count
      return unsafe upstreams.enumerated().map { ($1, share + ($0 < rest ? 1 : 0)) }
    }
    for (upstream, count) in requests where count > 0 { upstream.request(.max(count)) }
  }

  /// Moves records to `output`: at most `records`, about `bytes` bytes.
  func take(records: UInt32, bytes: Int, into output: inout [UInt8], calls: inout Calls) -> UInt32 {
    let (count, newCalls) = lock.withLock { unsafe queue.take(records: records, bytes: bytes, into: &output) }
    calls = newCalls
    return count
  }

  /// The next step.
  var outlook: Outlook {
    lock.withLock {
      guard unsafe queue.isEmpty else { return unsafe queue.isBlocked ? .blocked : .more }
      switch unsafe phase {
      case .active, .over:
        unsafe isScheduled = false
        return .idle
      case .completing(let ending), .completingRun(let ending):
        return isCompletionSent ? .idle : .complete(Complete.Ending(ending))
      case .releasing:
        // Pending acknowledgements will still arrive.
        return unsafe queue.isAcknowledged ? .release : .idle
      }
    }
  }

  /// Ends a publication that was given up and has sent everything. Returns whether it has ended.
  func endsIfReleased() -> Bool {
    guard case .release = outlook else { return false }
    end(.failure(.closedHere))
    return true
  }

  func completionSent() {
    isCompletionSent = true
  }

  /// Returns whether the publication may have more to send.
  func acknowledged(_ frame: Ack) -> Bool {
    noteAcknowledged(frame.lastOffset)
    let (calls, canAdvance): (Calls, Bool) = lock.withLock {
      let wasBlocked = unsafe queue.isBlocked
      let calls = unsafe queue.acknowledge(through: frame.through, lastOffset: frame.lastOffset)
      if case .releasing = unsafe phase { return (calls, true) } else { return (calls, wasBlocked) }
    }
    noteAccepted()
    Self.run(calls)
    return canAdvance
  }

  /// Notes that the broker accepts records again.
  func noteAccepted() {
    guard reopening.isRefused else { return }
    reopening.taken(at: core.loop.now)
    states.send(.active)
  }

  /// Handles the broker's confirmation of the end that this producer gave the topic.
  ///
  /// - Parameter startedOver: whether the topic has another epoch now.
  /// - Returns: whether the publication continues there, on another stream.
  func completed(startedOver: Bool) -> Bool {
    let (ending, isRun): (Ending, Bool) = lock.withLock {
      switch unsafe phase {
      case .completing(let own): return (own, false)
      case .completingRun(let own): return (own, true)
      case .active, .releasing, .over: return (.finished, false)
      }
    }
    // A producer with an id of the caller's has ended the topic for good: the broker would take another end from it for a repetition.
    guard isRun, startedOver, !hasChosenProducer, isSource else {
      end(ending, isConfirmed: true)
      return false
    }
    forgetProducer()
    return startOver()
  }

  /// Handles that the topic has another epoch. The sources start again there, and their records for the last epoch are dropped.
  ///
  /// - Returns: whether there are sources, so that the publication must be reopened.
  func startOver() -> Bool {
    guard isSource else { return false }
    interrupted()
    let lost = ClientError(
      .epochChanged, "topic \(topic) has started over; what was published and not acknowledged isn't in it",
      topic: topic)
    let (calls, sources, continues): (Calls, [SourceAttachment], Bool) = lock.withLock {
      switch unsafe phase {
      case .active, .completingRun: break
      case .completing, .releasing, .over: return ([], [], false)
      }
      unsafe phase = .active
      unsafe promised = 0
      return unsafe (queue.discard(.failure(lost)), self.sources, true)
    }
    for source in sources { source.connected(false) }
    Self.run(calls)
    return continues
  }

  /// Handles that another producer has ended the topic.
  func topicEnded(_ ending: Complete.Ending) {
    let how =
      switch ending {
      case .finished: "was finished"
      case .failure(_, let message): "was failed (\(message))"
      }
    let code: UInt32? = if case .failure(let code, _) = ending { code.rawValue } else { nil }
    end(
      .failure(
        ClientError(
          .topicEnded, "topic \(topic) \(how) by another producer; publish to another", topic: topic,
          brokerCode: code)))
  }

  /// Ends it, and calls the pending completions.
  ///
  /// - Parameter isConfirmed: whether the broker has all records, also if the ending is a failure.
  func end(_ ending: Ending, isConfirmed: Bool = false) {
    isOpen = false
    var calls: Calls = []
    var cancelled: [any Cancellable] = []
    let last: Ending? = lock.withLock {
      var last = ending
      switch unsafe phase {
      case .over: return nil
      // The first reason counts.
      case .releasing(let error): last = .failure(error)
      case .active, .completing, .completingRun: break
      }
      unsafe phase = .over(last)
      let outcome = isConfirmed ? Self.outcome(.finished) : Self.outcome(ending)
      calls = unsafe queue.removeAll(outcome) + completions.map { ($0, outcome) }
      unsafe completions = []
      cancelled = takeUpstreams()
      return last
    }
    guard let last else { return }
    for upstream in cancelled { upstream.cancel() }
    Self.run(calls)
    echo.send(completion: last)
    states.send(completion: .finished)
  }
}

extension Complete.Ending {
  /// A topic's end in the form that its subscribers get.
  func completion(of topic: String) -> Subscribers.Completion<ClientError> {
    switch self {
    case .finished: .finished
    case .failure(let code, let message):
      .failure(ClientError(failureOf: topic, code: code, message: message))
    }
  }

  init(_ completion: Subscribers.Completion<ClientError>) {
    switch completion {
    case .finished: self = .finished
    case .failure(let error):
      self = .failure(
        code: error.brokerCode.map { ErrorCode(rawValue: $0) } ?? .producerFailure,
        message: error.crossingMessage)
    }
  }
}
