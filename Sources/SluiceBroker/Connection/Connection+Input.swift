import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// Reads bytes, decodes frames and performs the session's actions. Nothing is read while answers wait or memory is short.
extension Connection {
  func streamReadable() {
    // Once: each use of the property counts two references.
    let context = context
    let result = unsafe stream.read(into: context.readBuffer)
    guard case .bytes(let count) = result else {
      switch result {
      case .wouldBlock, .bytes: break
      case .end: close(because: "the client has closed it")
      case .failed(let error): failed(error)
      }
      return
    }
    guard case .open = phase else { return }
    keepalive.heard(at: context.loop.now.nanoseconds)
    countReceived(count, in: context)
    client.workBudget.renew()
    let bytes = unsafe UnsafeRawBufferPointer(rebasing: context.readBuffer[..<count])
    if unread.isEmpty {
      let taken = unsafe takeUp(bytes)
      if taken < count { unread = unsafe Array(bytes[taken...]) }
    } else {
      // Bytes keep their order: earlier ones are decoded first.
      unsafe unread.append(contentsOf: bytes)
    }
    updateReading()
    if decoder.heldBytes != 0 || !unread.isEmpty || buffered != 0 || stream.heldBytes != 0 { countBuffered() }
  }

  /// Closes the connection because of an error of the stream. The stream's layers may speak another protocol with the client; a violation or a timeout
  /// there counts like one of the broker's own protocol.
  private func failed(_ error: IOError) {
    let reason = error.reason ?? error.description
    switch error.fault {
    case .violation: lastWord = lastWord ?? WireError(.malformedFrame, reason)
    case .silence:
      core.metrics.add(isInHandshake ? .handshakeTimeouts : .keepaliveTimeouts)
      lastWord = lastWord ?? WireError(isInHandshake ? .handshakeTimeout : .keepaliveTimeout, reason)
    case nil: break
    }
    close(because: error.description)
  }

  /// Handles the frames in `bytes`, until the limit of unread answers or the turn's work budget is reached. Reading then pauses.
  ///
  /// - Returns: how many bytes were handled; the rest is for later.
  private func takeUp(_ bytes: UnsafeRawBufferPointer) -> Int {
    let limit = core.configuration.limits.answers
    do {
      try unsafe decoder.decode(bytes) { header, body throws(WireError) in
        client.workBudget.tookFrame()
        guard try header.admission(at: .broker) == .take else { return !client.workBudget.isExhausted }
        client.workBudget.spend(FrameCost.steps(for: header.type))
        let action = try unsafe streams.session.receive(header, body, core.rules)
        perform(action)
        guard case .open = phase else { return false }
        return streams.answers.count <= limit && !client.workBudget.isExhausted
      }
    } catch {
      fail(error)
    }
    guard case .open = phase else { return bytes.count }
    countTables(streams.session.tableBytes)
    // Between HELLO and WELCOME a client sends nothing.
    if !isInHandshake { decoder.maximumFrame = core.configuration.limits.frame }
    if streams.answers.count > limit { waitsForAnswers = true }
    if client.workBudget.isExhausted { context.makeReady(self) }
    return decoder.takenBytes
  }

  private func perform(_ action: ServerAction) {
    if action.isRequest { lastUse = context.loop.now }
    switch action {
    case .welcome(let agreement): opened(agreement)
    case .authenticate(let agreement): authenticate(agreement)
    case .pong(let token): send(Pong(token: token))
    default: streams.perform(action)
    }
  }

  /// Pauses reading while earlier input waits, for any reason. Called whenever one of the reasons has changed.
  private func updateReading() {
    guard case .open = phase else { return }
    stream.readsPaused = waitsForAnswers || waitsForMemory || client.workBudget.isExhausted || !unread.isEmpty
  }

  /// Handles earlier input, then resumes reading: after answers were written, in another turn, or when memory is free again.
  func resumeReading() {
    if client.workBudget.isExhausted || waitsForMemory { return updateReading() }
    waitsForAnswers = false
    // A copy, since bytes that arrive meanwhile are appended to `unread`.
    let earlier = unread
    let taken = unsafe earlier.withUnsafeBytes { unsafe takeUp($0) }
    unread = Array(unread.dropFirst(taken))
    updateReading()
  }

  /// Begins a new turn of this connection: continues unfinished work, then reading.
  func resumeWork() {
    client.workBudget.renew()
    streams.resumeWork()
    if client.workBudget.isExhausted { return makeReady() }
    resumeReading()
  }

  /// Whether the broker has yet to process earlier input before it may read more.
  var isAtWork: Bool {
    waitsForAnswers || client.workBudget.isExhausted || !unread.isEmpty || streams.hasUnfinishedWork
  }

  /// Pauses reading from a producer because memory is short, or resumes it.
  func waitForMemory(_ waits: Bool) {
    guard case .open = phase, waits != waitsForMemory, !waits || streams.counts.publications > 0 else {
      return
    }
    waitsForMemory = waits
    if waits { core.metrics.add(.memoryPauses) }
    guard !waits else { return updateReading() }
    // Answers beyond the limit are written first, which resumes reading.
    guard streams.answers.count <= core.configuration.limits.answers else {
      waitsForAnswers = true
      return updateReading()
    }
    resumeReading()
  }

  /// Counts the buffered bytes. Called when they may have changed, not for every frame.
  func countBuffered() {
    if case .closed = phase { return }
    let count =
      unread.count + decoder.heldBytes + streams.answers.count + pending.ownBytes + streams.relayedBytes
      + stream.heldBytes
    if count != buffered { context.buffered(count - buffered) }
    buffered = count
  }

  func streamWritable() {
    context.makeReady(self)
  }

  /// Counts at the end of the turn, since the stream may call this while the connection writes to it.
  func streamHoldsOther() {
    context.makeReady(self)
  }

  func streamFailed(_ error: IOError) { failed(error) }
}
