import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// Dead letters: records that no member could process are appended to another topic, with the reason and the number of deliveries in headers.
extension Group {
  private typealias DeadLetter = (offset: UInt64, deliveries: UInt32, reason: GroupState.Reason)

  private enum Reading {
    /// The record, with headers that describe why it was given up.
    case read(BatchBuilder)
    /// The broker is stopping.
    case stopping
    /// The record must first be read from storage. The source waits for it.
    case stored(StoreRequest, RecordSource)
    /// The topic no longer has the record.
    case gone
  }

  /// Appends records that were given up to the dead-letter topic. When that topic refuses one, the group retries after growing delays; until then the record
  /// is neither settled nor delivered again. On `loop`, without the lock.
  func sendDeadLetters(on loop: any GroupLoop) {
    let route = loop.deadLetterRoute
    while let record = nextDeadLetter() {
      if let route, !core.withLock({ $0.deadLetters.isOpen }) {
        return loop.isServing ? openDeadLetters(route, on: loop) : sendDeadLettersLater(on: loop)
      }
      var source = RecordSource(epoch, at: LogCursor(unplacedAt: record.offset), portions: 1...1)
      guard finish(record, read(record, from: &source, on: loop), on: loop) else { return }
    }
    route?.close(producer: deadLetterProducer)
  }

  /// Handles the result of reading a record. Returns false if the loop over dead letters has to stop and continues later.
  private func finish(_ record: DeadLetter, _ reading: Reading, on loop: any GroupLoop) -> Bool {
    switch reading {
    case .read(let deadLetter):
      guard let route = loop.deadLetterRoute else { return keep(deadLetter, of: record, on: loop) }
      sendNumbered(deadLetter, offset: record.offset, route, on: loop)
      return false
    case .gone:
      step(on: loop) { core in core.state.deadLetterDone(record.offset, isKept: false) }
      return true
    case .stored(let request, let source):
      load(request, for: record, source, on: loop)
      return false
    case .stopping:
      sendDeadLettersLater(on: loop)
      return false
    }
  }

  /// Appends a dead letter to its topic. Returns false if the loop over dead letters has to stop and continues later.
  private func keep(_ deadLetter: BatchBuilder, of record: DeadLetter, on loop: any GroupLoop) -> Bool {
    // The record is settled when the dead letter is on disk.
    let answer = loop.keep(deadLetter, in: settings.deadLetters, durably: topic.isDurable) {
      [weak self, unowned loop] fault in
      guard let self else { return }
      step(on: loop) { core in core.state.deadLetterDone(record.offset, isKept: fault == nil) }
      sendDeadLetters(on: loop)
    }
    switch answer {
    case .kept:
      step(on: loop) { core in core.state.deadLetterDone(record.offset, isKept: true) }
      return true
    case .keptLater: return false
    case .refused(let error):
      reportRefusal(error, on: loop)
      sendDeadLettersLater(on: loop)
      return false
    }
  }

  /// Reports that the dead-letter topic refuses records: once, until it accepts one.
  func reportRefusal(_ error: WireError, on loop: any GroupLoop) {
    guard core.withLock({ $0.deadLetters.delay == DeadLetterProgress.firstDelay }) else { return }
    loop.deadLettersWait(of: name, on: topic.name, in: settings.deadLetters, error)
  }

  /// Reads a record that isn't in memory, then continues with it.
  private func load(
    _ request: StoreRequest, for record: DeadLetter, _ source: RecordSource, on loop: any GroupLoop
  ) {
    request.load(of: topic.name, on: loop.loop) { [weak self, unowned loop] found in
      guard let self else { return }
      if found.isFailure { return sendDeadLettersLater(on: loop) }
      var source = source
      source.take(found, for: request)
      if finish(record, read(record, from: &source, on: loop), on: loop) { sendDeadLetters(on: loop) }
    }
  }

  private func nextDeadLetter() -> DeadLetter? {
    core.withLock { core in
      guard core.fault == nil, let next = core.state.nextDeadLetter() else {
        core.deadLetters = DeadLetterProgress()
        return nil
      }
      return next
    }
  }

  /// Retries after a delay, which grows until a dead letter is stored.
  func sendDeadLettersLater(on loop: any GroupLoop) {
    let delay = core.withLock { core in
      let delay = core.deadLetters.delay
      core.deadLetters.delay = min(delay * 2, DeadLetterProgress.longestDelay)
      return delay
    }
    _ = loop.loop.schedule(after: delay) { [weak self, unowned loop] in
      self?.sendDeadLetters(on: loop)
    }
  }

  private func read(_ record: DeadLetter, from source: inout RecordSource, on loop: any GroupLoop)
    -> Reading
  {
    // A broker that stops appends no more records.
    guard loop.isServing else { return .stopping }
    let slice: LogSlice
    switch source.next(demand: 1, bytes: 1, hint: SegmentHint()) {
    case .run(let run, _): slice = run
    case .loading(let request?): return topic.isGone ? .gone : .stored(request, source)
    case .copies, .passed, .demandExhausted, .caughtUp, .lagged, .loading(nil): return .gone
    }
    guard
      let batch = unsafe deadLetter(
        slice.bytes, offset: record.offset, deliveries: record.deliveries, reason: record.reason,
        longest: loop.longestRecord)
    else { return .gone }
    return .read(batch)
  }

  /// Returns the record in `items` with headers that describe why it was given up; without them if it would become too long.
  private func deadLetter(
    _ items: UnsafeRawBufferPointer, offset: UInt64, deliveries: UInt32, reason: GroupState.Reason,
    longest: Int
  ) -> BatchBuilder? {
    var iterator = unsafe BatchIterator(items, time: 0)
    guard let record = try? iterator.next() else { return nil }
    let attributes = unsafe record.isAttributed ? try? RecordAttributes(record.body) : nil
    let payload = unsafe attributes?.payload ?? record.body
    var headers: [(name: [UInt8], value: [UInt8])] = []
    unsafe attributes?.forEachHeader { name, value in unsafe headers.append((Array(name), Array(value))) }
    let plain = headers
    for (name, value) in [
      ("sluice-dead-topic", topic.name), ("sluice-dead-group", self.name),
      ("sluice-dead-offset", String(offset)), ("sluice-dead-deliveries", String(deliveries)),
      ("sluice-dead-reason", reason.text),
    ] {
      headers.append((Array(name.utf8), Array(value.utf8)))
    }
    let length = try? unsafe BatchBuilder.bodyLength(
      key: attributes?.key?.count, headers: headers, payload: payload.count)
    let fits = length.map { $0 <= longest } ?? false
    var batch = BatchBuilder()
    do {
      try unsafe batch.append(key: attributes?.key, headers: fits ? headers : plain, payload: payload)
    } catch {
      return nil
    }
    return batch
  }
}

extension GroupState.Reason {
  fileprivate var text: String {
    switch self {
    case .retried: "retried"
    case .rejected: "rejected"
    case .deadline: "deadline"
    case .memberLeft: "member-left"
    }
  }
}
