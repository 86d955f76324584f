import ReactiveCore
import SluiceWire

// What a publication does on the client's loop: gives records to the connection, asks upstreams for more, ends.
extension Publication {
  func opened(on stream: UInt32) {
    self.stream = stream
    isOpen = true
  }

  /// The connection is lost, or not there yet. What isn't acknowledged stays.
  func interrupted() {
    stream = 0
    isOpen = false
    isCompletionSent = false
    isTopicConnected = nil
  }

  /// Asks the upstreams for what they may send: what is granted and not yet used, as far as there is room for it.
  func requestMore(granted: UInt64) {
    let requests: [(any Subscription, Int)] = lock.locked {
      guard case .active = unsafe phase, unsafe !upstreams.isEmpty else { return [] }
      let limits = unsafe queue.limits
      var target = unsafe min(limits.records, Int(clamping: granted)) - queue.count
      target = unsafe min(target, (limits.bytes - queue.byteCount) / queue.averageSize)
      // More than fills a few frames only goes through memory that has left the caches before it is sent.
      target = unsafe min(target, max(4 * Self.batchSize / queue.averageSize, 64))
      // How large their records are is known from the first few on.
      if unsafe queue.accepted < 16 { target = min(target, 16) }
      // One in any case, however long it may be.
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
    let (count, newCalls) = lock.locked { unsafe queue.take(records: records, bytes: bytes, into: &output) }
    calls = newCalls
    return count
  }

  /// What is to be done next.
  var outlook: Outlook {
    lock.locked {
      guard unsafe queue.isEmpty else { return unsafe queue.isBlocked ? .blocked : .more }
      switch unsafe phase {
      case .active, .over:
        unsafe isScheduled = false
        return .idle
      case .completing(let ending), .completingRun(let ending):
        return isCompletionSent ? .idle : .complete(Complete.Ending(ending))
      case .releasing:
        // Whoever waits for an acknowledgement still gets it.
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

  /// Returns true when there may be something to do about it.
  func acknowledged(_ frame: Ack) -> Bool {
    let (calls, isNews): (Calls, Bool) = lock.locked {
      let wasBlocked = unsafe queue.isBlocked
      let calls = unsafe queue.acknowledge(through: frame.through, lastOffset: frame.lastOffset)
      if case .releasing = unsafe phase { return (calls, true) } else { return (calls, wasBlocked) }
    }
    noteTaken()
    Self.run(calls)
    return isNews
  }

  /// The broker takes what is published.
  func noteTaken() {
    guard reopening.isRefused else { return }
    reopening.taken(at: core.loop.now)
    states.send(.active)
  }

  /// The broker has confirmed the end that this producer gave the topic.
  ///
  /// - Parameter startedOver: whether the topic is in another life now.
  /// - Returns: whether the publication goes on there, on another stream.
  func completed(startedOver: Bool) -> Bool {
    let (ending, isRun): (Ending, Bool) = lock.locked {
      switch unsafe phase {
      case .completing(let own): return (own, false)
      case .completingRun(let own): return (own, true)
      case .active, .releasing, .over: return (.finished, false)
      }
    }
    // One that has a number of its own has ended the topic with that, and can't be told from one that says so again.
    guard isRun, startedOver, !hasChosenProducer, isSource else {
      end(ending, isConfirmed: true)
      return false
    }
    forgetProducer()
    return startOver()
  }

  /// The topic is in another life. The sources begin anew there, and what they have published for the last one is forgotten.
  ///
  /// - Returns: whether there are any, so that the publication is to be opened again.
  func startOver() -> Bool {
    guard isSource else { return false }
    interrupted()
    let lost = ClientError(
      .epochChanged, "topic \(topic) has started over; what was published and not acknowledged isn't in it",
      topic: topic)
    let (calls, sources, goesOn): (Calls, [SourceAttachment], Bool) = lock.locked {
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
    return goesOn
  }

  /// Another producer has ended the topic.
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

  /// Ends it, and tells everybody who waits.
  ///
  /// - Parameter isConfirmed: the broker has everything, whatever the ending is.
  func end(_ ending: Ending, isConfirmed: Bool = false) {
    isOpen = false
    var calls: Calls = []
    var cancelled: [any Cancellable] = []
    let last: Ending? = lock.locked {
      var last = ending
      switch unsafe phase {
      case .over: return nil
      // The reason is the first one.
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
  /// A topic's end as its subscribers are told.
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
        code: error.brokerCode.map { ErrorCode(rawValue: $0) } ?? .producerFailure, message: error.message)
    }
  }
}
