import ReactiveCore
import Synchronization

// Accepting records, and the ends that producers request, from any thread.
extension Publication {
  /// Accepts a message, or does what ``whenFull`` says.
  ///
  /// - Parameter isOwed: it was requested from upstream while there was room for it.
  @discardableResult
  func send(_ message: Message, isOwed: Bool = false) -> TopicSubject.SendResult {
    let length: Int
    do {
      length = try message.bodyLength()
    } catch {
      release(error)
      return .ended
    }
    let result = send(length, isOwed: isOwed, { message.append(to: &$0) })
    if result == .accepted, hasListeners.load(ordering: .relaxed) { echo.send(message) }
    return result
  }

  func send(copying payload: UnsafeRawBufferPointer) -> TopicSubject.SendResult {
    let result = send(payload.count) { unsafe Message.append(payload, to: &$0) }
    if result == .accepted, hasListeners.load(ordering: .relaxed) {
      unsafe echo.send(Message([UInt8](payload)))
    }
    return result
  }

  @inline(__always)
  private func send(
    _ length: Int, isOwed: Bool = false, _ append: (inout [UInt8]) -> Void
  ) -> TopicSubject.SendResult {
    if length > maximumRecord {
      release(tooLarge(length))
      return .ended
    }
    var calls: Calls = []
    var result = TopicSubject.SendResult.ended
    // Not by `update`, which costs a call for every record.
    let mustWake = lock.withLock {
      guard case .active = unsafe phase else { return false }
      // Requested records are always accepted: there was room for them when they were requested.
      if unsafe promised > 0 {
        unsafe promised -= 1
      } else if !isOwed, unsafe queue.isFull {
        switch whenFull {
        case .fail:
          unsafe queue.countDropped()
          result = .bufferFull
          return false
        case .dropOldest:
          if unsafe queue.count > 0 { calls = unsafe queue.dropOldest() }
        }
      }
      unsafe queue.accept(append)
      result = .accepted
      return schedule()
    }
    if mustWake { core.post(.advance(self)) }
    if !calls.isEmpty { Self.run(calls) }
    return result
  }

  /// Accepts a record if there is room. Returns whether it was accepted.
  func enqueue(copying payload: UnsafeRawBufferPointer) throws(ClientError) -> Bool {
    if payload.count > maximumRecord { throw tooLarge(payload.count) }
    var isAccepted = false
    var isActive = false
    // As in `send`. The error is thrown separately, so that accepted records don't pay for its release.
    let mustWake = lock.withLock {
      guard case .active = unsafe phase else { return false }
      isActive = true
      if unsafe queue.isFull { return false }
      unsafe queue.accept { unsafe Message.append(payload, to: &$0) }
      isAccepted = true
      return schedule()
    }
    // Nil if the topic has started over meanwhile: the caller retries, as for lack of room.
    if !isActive, let error = lock.withLock({ inactivity }) { throw error }
    if mustWake { core.post(.advance(self)) }
    if isAccepted, hasListeners.load(ordering: .relaxed) { unsafe echo.send(Message([UInt8](payload))) }
    return isAccepted
  }

  /// Accepts a message when there is room.
  ///
  /// - Parameter completion: called when it is accepted, or acknowledged with `awaitsAcknowledgement`; or with the failure.
  /// - Returns: an id to stop waiting for room with; nil if there was room.
  func enqueue(
    _ message: Message, awaitsAcknowledgement: Bool, _ completion: @escaping PublishQueue.Completion
  ) -> UInt64? {
    do throws(ClientError) {
      let length = try message.bodyLength()
      if length > maximumRecord { throw tooLarge(length) }
    } catch {
      completion(.failure(error))
      return nil
    }
    var error: ClientError?
    var waiterID: UInt64?
    var isAccepted = false
    update {
      error = inactivity
      guard error == nil else { return false }
      if unsafe queue.isFull {
        waiterID = unsafe queue.apply(message, awaitsAcknowledgement: awaitsAcknowledgement, completion)
      } else {
        unsafe queue.accept { message.append(to: &$0) }
        if awaitsAcknowledgement { unsafe queue.awaitLast(completion) } else { isAccepted = true }
      }
      return schedule()
    }
    if let error {
      completion(.failure(error))
      return nil
    }
    if isAccepted { completion(.success(TopicSubject.Receipt(sequence: 0, offset: nil))) }
    if hasListeners.load(ordering: .relaxed) { echo.send(message) }
    return waiterID
  }

  func withdraw(_ waiterID: UInt64) {
    Self.run(lock.withLock { unsafe queue.withdraw(waiterID) })
  }

  /// Calls `completion` when all records accepted so far are acknowledged.
  func flush(_ completion: @escaping PublishQueue.Completion) {
    let calls: Calls = lock.withLock {
      if case .over(let ending) = unsafe phase { return [(completion, Self.outcome(ending))] }
      return unsafe queue.awaitAll(completion)
    }
    Self.run(calls)
  }

  /// As the other form; without acknowledgements, calls `completion` when the broker has read the records.
  func flush(confirmed completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    flush({ [self] outcome in
      guard acknowledgement == .none, case .success = outcome else { return completion(outcome.map { _ in }) }
      // Frames keep their order, so a broker that answers PING has read what was sent before.
      core.post(
        .open(
          .request(
            Request(nil, timeout: nil) { [self] (answer: Result<Duration, ClientError>) in
              completion(answer.flatMap { _ in failure.map { .failure($0) } ?? .success(()) })
            })))
    })
  }

  /// Ends the topic after the accepted records; calls `completion` when the broker has confirmed it.
  func complete(_ ending: Ending, _ completion: PublishQueue.Completion?) {
    var calls: Calls = []
    var cancelled: [any Cancellable] = []
    update {
      switch unsafe phase {
      case .active:
        unsafe phase = .completing(ending)
        cancelled = takeUpstreams()
        if let completion { unsafe completions.append(completion) }
        return schedule()
      case .completingRun:
        // The topic's end replaces that of the run.
        unsafe phase = .completing(ending)
        if let completion { unsafe completions.append(completion) }
      case .completing:
        if let completion { unsafe completions.append(completion) }
      case .releasing(let error):
        if let completion { calls = [(completion, .failure(error))] }
      case .over(let ending):
        if let completion { calls = [(completion, Self.outcome(ending))] }
      }
      return false
    }
    for upstream in cancelled { upstream.cancel() }
    Self.run(calls)
  }

  /// A source has ended: ends the topic after the accepted records. The subject's other sources are cancelled, and stay for the next run.
  func completeRun(_ ending: Ending) {
    var cancelled: [any Cancellable] = []
    update {
      guard case .active = unsafe phase else { return false }
      unsafe phase = .completingRun(ending)
      cancelled = unsafe upstreams
      unsafe upstreams = []
      return schedule()
    }
    for upstream in cancelled { upstream.cancel() }
  }

  /// Ends the publication after the accepted records. The topic continues.
  func release(_ error: ClientError) {
    var cancelled: [any Cancellable] = []
    update {
      switch unsafe phase {
      case .active: unsafe phase = .releasing(error)
      // The source's end is sent, and no other run follows.
      case .completingRun(let ending): unsafe phase = .completing(ending)
      case .completing, .releasing, .over: return false
      }
      cancelled = takeUpstreams()
      return schedule()
    }
    for upstream in cancelled { upstream.cancel() }
  }

  // MARK: Refusal

  /// Why no more records are accepted; nil while they are.
  private var inactivity: ClientError? {
    switch unsafe phase {
    case .active: nil
    case .releasing(let error), .over(.failure(let error)): error
    case .completing, .completingRun, .over(.finished):
      ClientError(.topicEnded, "topic \(topic) was ended here; publish to another", topic: topic)
    }
  }

  private func tooLarge(_ length: Int) -> ClientError {
    ClientError(
      .recordTooLarge,
      "a record has \(length) bytes; this broker's limit is \(maximumRecord): split it, or raise the broker's limit",
      topic: topic)
  }
}
