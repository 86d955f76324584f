import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire

/// The store of one shard on JetStream.
///
/// A commit is one message for each topic that it changes; an atomic batch where there are several. Its first message expects the stream's last sequence as
/// it will be when the commits before it are stored, so that several are under way.
///
/// ```
///   queue ── send, expecting `predicted` ──► sent ── acknowledged, in order ──► settled
///                                             │
///                                             └─ anything else ──► barrier: what isn't stored then never is ──► queue
/// ```
///
/// **Why this layout.** One message a commit was the fastest with three replicas (1.5 to 3 times as many small pipelined commits as states under subjects
/// of their own, rolled up). Each topic has a subject of its own, so that its batches are read without those of other topics, its old ones are purged
/// with one request, and an offset is found by bisection without an index of everything. What a change says besides batches is in the same
/// message, so opening has to read changes again: checkpoints of the changed topics bound that to ``JetStreamEngineOptions/checkpointBytes``.
///
/// **What makes it safe.** See ``EngineEnvelope`` for what counts. A failure is never followed by a blind repetition: a barrier is written, which expects the
/// last sequence that is known. If it is stored, nothing of what was under way is, or counts later. If it is refused, what is behind that
/// sequence is read: commits of this owner's are settled, and the fence of another owner ends this one. Messages that replace earlier ones (checkpoints) are
/// sent only when nothing else is under way, since a message that doesn't count would replace one that does. Purges name a sequence below the
/// last front.
// @unchecked: belongs to the client's loop.
final class EngineStore: ShardStore, @unchecked Sendable {
  enum Mode {
    case open
    /// It isn't known what became of what was sent.
    case resolving
    /// Checkpoints are being written.
    case checkpointing
    /// Another owner has the shard.
    case fenced
    case closed
  }

  let api: JetStream
  let loop: any EventLoop
  let names: EngineNames
  let options: JetStreamEngineOptions
  private let meter: CommitMeter
  let reads: StreamReads
  let lease: ShardLease
  /// This life of the owner.
  let opener: UInt64
  private var events: (ShardStoreEvent) -> Void = { _ in }

  var mode = Mode.open
  var fences: FenceTable
  /// The sequence of the fence under which messages are sent.
  var fence: UInt64
  var topics: [TopicID: EngineTopic]
  private(set) var nextTopic: TopicID
  /// The last sequence of which everything is known.
  var last: UInt64
  /// The last sequence when everything that was sent is stored.
  private var predicted: UInt64
  private var queue: [PendingCommit] = []
  private var sent: [PendingCommit] = []
  /// Whether more of a topic's front is being made known.
  var isReadingFront = false
  private var retryTimer: TimerToken?
  private var isDelayed = false
  /// Why what was sent isn't stored.
  private var cause: NATSError?

  /// Topics without a checkpoint that takes account of everything; nil for those that are deleted.
  private var dirty: Set<TopicID>
  private(set) var changedBytes: Int
  private var checkpointAt: Int
  /// When the next checkpoints may be written, however much has changed.
  private var nextCheckpoint: MonotonicTime
  /// The sequence of the last front message.
  private var front: UInt64
  /// What is written while the mode is ``Mode/checkpointing``.
  private var checkpoint: CheckpointWrite?
  /// Whether space can be freed behind the last front only.
  private var isCheckpointWanted = false
  private var space: EngineSpace
  private var closing: (@Sendable (StoreError?) -> Void)?
  /// Bytes of the stream, about: what was sent since the engine told them last is counted here.
  private var bytes: UInt64

  init(_ opened: EngineOpening.Result, _ opening: EngineOpening) {
    api = opening.api
    loop = opening.loop
    names = opening.names
    options = opening.options
    meter = opening.meter
    reads = opening.reads
    lease = opening.lease
    opener = opening.opener
    fences = opened.fences
    fence = opened.fence
    topics = opened.topics
    nextTopic = opened.nextTopic
    last = opened.fence
    predicted = last
    front = opened.front
    dirty = opened.dirty
    space = EngineSpace(deleted: opened.deleted)
    changedBytes = opened.changedBytes
    bytes = opened.bytes
    checkpointAt = options.checkpointBytes
    nextCheckpoint = loop.now
    meter.begin(Int(lease.shard.rawValue))
  }

  var limit: Int? { options.limit }
  var depth: Int { options.depth }
  /// An atomic batch has 1,000 messages at most, and large changes take several.
  static let mostChanges = 256
  var mostChanges: Int { Self.mostChanges }
  var isBlocking: Bool { false }

  func begin(_ events: @escaping @Sendable (ShardStoreEvent) -> Void) { self.events = events }

  /// The most bytes of a message's payload: headers need room, too.
  private var mostBytes: Int { Self.mostBytes(of: api.client, options) }
  static func mostBytes(of client: NATSClient, _ options: JetStreamEngineOptions) -> Int {
    max(min(client.maximumPayload - 1_024, options.messageBytes), 1_024)
  }

  // MARK: Commits

  func commit(_ changes: [TopicChange], as number: UInt64) -> CommitOutcome {
    if let refusal { return .settled(refusal) }
    var changes = changes
    if options.flaw == .noPlaces {
      for index in changes.indices {
        changes[index].states.removeAll { $0.kind == .group || $0.kind == .cursor }
      }
    }
    var extents: [StoredExtent?] = []
    do throws(StoreError) {
      for change in changes { extents.append(try extent(after: change)) }
    } catch {
      return .settled(error)
    }
    for (change, extent) in zip(changes, extents) { project(change, extent) }
    queue.append(PendingCommit(number, changes, extents))
    pump()
    return .underWay
  }

  private var refusal: StoreError? {
    switch mode {
    case .fenced: fencedError
    case .closed: StoreError(.failed, "shard \(names.shard) is closed")
    default: nil
    }
  }

  private var fencedError: StoreError {
    StoreError(.fenced, "shard \(names.shard) has another owner now; this one had term \(lease.term)")
  }

  /// The topic's extent after a change, except for what it drops.
  private func extent(after change: TopicChange) throws(StoreError) -> StoredExtent? {
    if change.isDeletion { return nil }
    let known = topics[change.topic]
    guard known.map({ !$0.isDeleting }) ?? (change.row != nil) else {
      throw StoreError(
        .invalid, "topic \(change.topic.rawValue) isn't there, and the change has no row for it")
    }
    if let violation = change.states.lazy.compactMap(\.violation).first { throw violation }
    var extent = known?.projected ?? StoredExtent()
    for batch in change.batches { try extent.append(batch, in: " in \(names.stream)") }
    return extent
  }

  private func project(_ change: TopicChange, _ extent: StoredExtent?) {
    guard let extent else {
      topics[change.topic]?.isDeleting = true
      return
    }
    if topics[change.topic] == nil, let row = change.row { topics[change.topic] = EngineTopic(row: row) }
    topics[change.topic]?.projected = extent
    for batch in change.batches {
      topics[change.topic]?.index.append(.init(header: unsafe BatchHeader(batch.value)!, sequence: 0))
    }
  }

  /// Sends what may be sent.
  func pump() {
    if closing != nil { return finishClosing() }
    while mode == .open {
      if isCheckpointDue {
        // It goes alone.
        if sent.isEmpty { beginCheckpoint() }
        return
      }
      guard let next = queue.first, sent.count < depth else { return }
      guard let messages = messages(of: next) else { return }
      if let refusal = refusal(of: next, messages) {
        // Those before it settle first.
        if sent.isEmpty { loop.soon { [self] in if sent.isEmpty, mode == .open { fail(refusal) } } }
        return
      }
      queue.removeFirst()
      sent.append(next)
      send(next, messages)
    }
  }

  private var isCheckpointDue: Bool {
    isCheckpointWanted || changedBytes >= checkpointAt && loop.now >= nextCheckpoint
  }

  /// Why a commit with records has no room.
  private func refusal(of pending: PendingCommit, _ messages: [NATSMessage]) -> StoreError? {
    guard let limit, pending.changes.contains(where: { !$0.batches.isEmpty }) else { return nil }
    let size = messages.reduce(0) { $0 + $1.payload.count }
    guard bytes + UInt64(size) > UInt64(limit) else { return nil }
    return StoreError(
      .full,
      "shard \(names.shard) has \(bytes) bytes, and may have \(limit); delete topics or lower their limits")
  }

  /// A commit's messages, as they would be sent next. Nil when it has to be found out first where a topic begins.
  private func messages(of pending: PendingCommit) -> [NATSMessage]? {
    switch pending.messages(behind: predicted, under: fence, topics, names, atMost: mostBytes) {
    case .ready(let messages): return messages
    case .unknownFront(let topic, let offset):
      readFront(of: topic, behind: offset)
      return nil
    }
  }

  private func send(_ pending: PendingCommit, _ messages: [NATSMessage]) {
    for (change, extent) in zip(pending.changes, pending.sentExtents) {
      guard let extent else { continue }
      topics[change.topic]?.sentBeginning = .init(
        firstOffset: extent.firstOffset, bytesBefore: extent.bytesBefore)
    }
    for (change, sequence) in zip(pending.changes, pending.firstSequences) {
      guard let first = change.batches.first, let last = change.batches.last else { continue }
      topics[change.topic]?.index.place(first.firstOffset..<last.endOffset, at: sequence)
    }
    guard !messages.isEmpty else {
      pending.last = predicted
      pending.isStored = true
      return loop.soon { [self] in settleStored() }
    }
    var messages = messages
    if options.flaw != .noFence, options.flaw != .blindRetry {
      messages[0].headers.expectLastSequence(predicted)
    }
    predicted += UInt64(messages.count)
    pending.last = predicted
    pending.error = nil
    pending.sentAt = loop.now
    let size = messages.reduce(0) { $0 + $1.payload.count }
    changedBytes += size
    bytes += UInt64(size)
    let fence = fence
    if options.flaw == .earlyAnswer, !pending.isAnswered {
      pending.isAnswered = true
      loop.soon { [self] in
        apply(pending)
        events(.settled(pending.number, nil))
      }
    }
    do throws(NATSError) {
      try api.commit(messages, to: names.stream) { [self] in answered(pending, under: fence, $0) }
    } catch {
      let unsent = error
      loop.soon { [self] in answered(pending, under: fence, .failure(unsent)) }
    }
  }

  private func answered(
    _ pending: PendingCommit, under fence: UInt64, _ result: Result<PublishAcknowledgement, NATSError>
  ) {
    // After a barrier it is known what became of it.
    guard fence == self.fence, mode != .fenced, mode != .closed, !pending.isStored else { return }
    switch result {
    case .success(let acknowledgement)
    where acknowledgement.sequence == pending.last || options.flaw == .noFence || options.flaw == .blindRetry:
      pending.isStored = true
      meter.note(Int(lease.shard.rawValue), loop.now - pending.sentAt)
      settleStored()
    case .success(let acknowledgement):
      lost(NATSError(.malformedAnswer, "a commit has sequence \(acknowledgement.sequence)"))
    case .failure(let error):
      pending.error = error
      lost(error)
    }
  }

  /// Settles what is stored, as far as all before it is.
  private func settleStored() {
    guard mode != .fenced, mode != .closed else { return }
    while let first = sent.first, first.isStored {
      sent.removeFirst()
      last = max(last, first.last)
      if first.isAnswered { continue }
      apply(first)
      events(.settled(first.number, nil))
    }
    pump()
  }

  private func apply(_ pending: PendingCommit) {
    for (index, change) in pending.changes.enumerated() where !change.isNothing {
      nextTopic = max(nextTopic, TopicID(rawValue: change.topic.rawValue + 1))
      dirty.insert(change.topic)
      guard let extent = pending.sentExtents[index] else {
        topics[change.topic] = nil
        space.deleted(change.topic)
        continue
      }
      topics[change.topic]?.take(change, extent, at: pending.firstSequences[index])
      if change.truncateBefore != nil { space.truncated(change.topic) }
    }
  }

  // MARK: Outcomes that aren't known

  /// It isn't known any more what is stored, or something isn't that should be.
  private func lost(_ error: NATSError) {
    guard mode == .open || mode == .checkpointing else { return }
    if options.flaw == .blindRetry, mode == .open {
      queue = sent + queue
      sent = []
      _ = loop.schedule(after: .milliseconds(50)) { [weak self] in self?.pump() }
      return
    }
    mode = .resolving
    checkpoint = nil
    cause = error
    if error.code != .resourcesExhausted, error.code != .wrongLastSequence { delayed(error) }
    resolve()
  }

  private func delayed(_ error: NATSError) {
    isDelayed = true
    events(.delayed(StoreError(error, "shard \(names.shard) can't be written")))
  }

  /// Writes a barrier: what isn't stored before it never counts.
  private func resolve() {
    guard mode == .resolving else { return }
    publish(EngineFence(term: lease.term, opener: opener, .barrier)) { [self] result in
      guard mode == .resolving else { return }
      switch result {
      case .success(let sequence): resolved(by: sequence)
      case .failure(let error) where error.code == .wrongLastSequence: readBehind(from: last + 1)
      case .failure(let error) where error.code == .resourcesExhausted && isAllRefused: refusedAll()
      case .failure(let error):
        delayed(error)
        tryAgain()
      }
    }
  }

  /// Writes a fence message that expects the last sequence.
  private func publish(_ fence: EngineFence, _ done: @escaping (Swift.Result<UInt64, NATSError>) -> Void) {
    var message = NATSMessage(subject: names.fence, payload: fence.message())
    message.headers.expectLastSequence(last)
    do throws(NATSError) {
      try api.publish(message, to: names.stream) { done($0.map(\.sequence)) }
    } catch {
      let unsent = error
      loop.soon { done(.failure(unsent)) }
    }
  }

  private func tryAgain() {
    loop.cancel(&retryTimer)
    retryTimer = loop.schedule(after: .milliseconds(50)) { [weak self] in
      self?.retryTimer = nil
      self?.resolve()
    }
  }

  /// Whether the engine has answered everything that was sent, and refused it.
  private var isAllRefused: Bool {
    sent.allSatisfy { pending in
      pending.error.map { $0.provesNothingWasStored || $0.code == .resourcesExhausted } ?? false
    }
  }

  /// A barrier is stored, and nothing of what was sent.
  private func resolved(by sequence: UInt64) {
    fence = sequence
    fences.take(EngineFence(term: lease.term, opener: opener, .barrier), at: sequence)
    last = sequence
    refusedAll()
  }

  /// Nothing of what was sent is stored, or counts later. A commit for which there is no room fails, and with it all that follow.
  private func refusedAll() {
    predicted = last
    mode = .open
    if isDelayed { events(.resumed) }
    isDelayed = false
    // One may have been stored although another before it was refused: it doesn't count.
    for pending in sent { pending.isStored = false }
    queue = sent + queue
    sent = []
    let cause = cause.take()
    if let cause, cause.code == .resourcesExhausted || cause.code == .payloadTooLarge {
      checkpointAt = changedBytes + options.checkpointBytes
      isCheckpointWanted = false
      return fail(StoreError(.full, "shard \(names.shard) has no room: \(cause)"))
    }
    for pending in queue {
      for change in pending.changes {
        guard let topic = topics[change.topic] else { continue }
        topics[change.topic]?.sentBeginning = .init(
          firstOffset: topic.extent.firstOffset, bytesBefore: topic.extent.bytesBefore)
      }
    }
    pump()
  }

  /// All commits that aren't settled fail.
  private func fail(_ error: StoreError) {
    let failed = queue
    queue = []
    for pending in failed {
      for change in pending.changes {
        if topics[change.topic]?.isStored == true {
          topics[change.topic]?.forgetProjection()
        } else {
          topics[change.topic] = nil
        }
      }
    }
    for pending in failed where !pending.isAnswered { events(.settled(pending.number, error)) }
  }

  /// Reads what was stored behind the last sequence that is known, and tries the barrier again behind it.
  private func readBehind(from sequence: UInt64) {
    var fault: StoreError?
    var end = sequence - 1
    let each: (StoredMessageView) -> Void = { [self] message in
      guard fault == nil, mode == .resolving else { return }
      do throws(StoreError) {
        try readBehind(message)
        end = message.sequence
      } catch {
        fault = error
      }
    }
    let done: (Swift.Result<ReadPage, NATSError>) -> Void = { [self] result in
      guard mode == .resolving else { return }
      if let fault { return fault.kind == .fenced ? fenced() : delayedByFault(fault) }
      switch result {
      case .failure(let error):
        delayed(error)
        tryAgain()
      case .success(let page):
        settleStored()
        last = max(last, end)
        if page.pending > 0 { readBehind(from: end + 1) } else { tryAgain() }
      }
    }
    do throws(NATSError) {
      try reads.messages(
        api, of: names.stream, matching: names.all, from: sequence, count: 256, maximumBytes: 4 << 20,
        each: each, done)
    } catch {
      let unsent = error
      loop.soon { done(.failure(unsent)) }
    }
  }

  private func delayedByFault(_ fault: StoreError) {
    events(.delayed(fault))
    tryAgain()
  }

  private func readBehind(_ message: StoredMessageView) throws(StoreError) {
    var reader = unsafe ByteReader(message.payload.memory)
    let envelope = try EngineEnvelope(&reader)
    switch envelope.kind {
    case .fence:
      let found = try EngineFence(&reader)
      if found.opener != opener, found.term >= lease.term { throw fencedError }
      fences.take(found, at: message.sequence)
      if found.opener == opener { fence = message.sequence }
    case .change:
      fences.note(message.sequence, under: envelope.fence)
      guard fences.counts(message.sequence, under: envelope.fence) else { return }
      for pending in sent where pending.last == message.sequence && pending.number == envelope.commit {
        pending.isStored = true
      }
    default: break
    }
  }

  private func fenced() {
    guard mode != .fenced, mode != .closed else { return }
    mode = .fenced
    loop.cancel(&retryTimer)
    queue = []
    sent = []
    events(.fenced(fencedError))
    closing.take()?(fencedError)
  }

  // MARK: Checkpoints

  /// Writes checkpoints of all topics that have changed, and a front message behind them. Nothing else is under way.
  private func beginCheckpoint() {
    mode = .checkpointing
    checkpoint = CheckpointWrite(dirty, topics, nextTopic: nextTopic, fence: fence, names, atMost: mostBytes)
    goOnWithCheckpoint()
  }

  private func goOnWithCheckpoint() {
    guard mode == .checkpointing else { return }
    guard let messages = checkpoint?.next(behind: last) else { return checkpointed() }
    let expected = last + UInt64(messages.count)
    let done: (Swift.Result<PublishAcknowledgement, NATSError>) -> Void = { [self] result in
      guard mode == .checkpointing else { return }
      switch result {
      case .success(let acknowledgement) where acknowledgement.sequence == expected:
        last = expected
        predicted = expected
        goOnWithCheckpoint()
      case .success: lost(NATSError(.malformedAnswer, "a checkpoint has another sequence than expected"))
      case .failure(let error): lost(error)
      }
    }
    do throws(NATSError) {
      try api.commit(messages, to: names.stream, done)
    } catch {
      let unsent = error
      loop.soon { done(.failure(unsent)) }
    }
  }

  /// All of them are stored, the front last.
  private func checkpointed() {
    checkpoint = nil
    front = last
    if options.flaw == .purgeBeyondFront {
      for id in topics.keys {
        try? api.purge(names.stream, matching: names.changes(of: id), before: last) { _ in }
      }
    }
    dirty = []
    isCheckpointWanted = false
    changedBytes = 0
    checkpointAt = options.checkpointBytes
    nextCheckpoint = loop.now + options.checkpointInterval
    mode = .open
    purge()
    pump()
  }

  // MARK: Space

  func reclaim() throws(StoreError) -> Bool {
    purge()
    if space.isWaiting, !dirty.isEmpty {
      isCheckpointWanted = true
      pump()
    }
    return false
  }

  private func purge() {
    guard mode == .open || mode == .resolving, let purge = space.next(below: front, dirty, topics) else {
      return
    }
    run(purge, purge.subjects(names)[...])
  }

  private func run(_ purge: EngineSpace.Purge, _ subjects: ArraySlice<String>) {
    guard let subject = subjects.first else {
      space.finish(purge, &topics)
      learnSize()
      return self.purge()
    }
    do throws(NATSError) {
      try api.purge(names.stream, matching: subject, before: purge.end) { [self] result in
        // Another time, then.
        guard case .success = result, mode != .fenced, mode != .closed else { return space.giveUp() }
        run(purge, subjects.dropFirst())
      }
    } catch {
      space.giveUp()
    }
  }

  func size() throws(StoreError) -> StoreSize? {
    learnSize()
    return StoreSize(files: bytes, reusable: 0, limit: options.limit.map { UInt64($0) })
  }

  private func learnSize() {
    try? api.streamInfo(names.stream) { [weak self] result in
      if case .success(let info) = result { self?.bytes = info.state.bytes }
    }
  }

  // MARK: The end

  func close(_ done: @escaping @Sendable (StoreError?) -> Void) {
    if let refusal { return done(refusal) }
    closing = done
    _ = loop.schedule(after: options.timeout) { [weak self] in
      guard let self, let done = closing.take() else { return }
      mode = .closed
      done(
        StoreError(.unavailable, "shard \(names.shard) can't be marked as closed: the engine doesn't answer"))
    }
    pump()
  }

  /// Marks the stream as closed. Nothing is under way.
  private func finishClosing() {
    guard mode == .open, queue.isEmpty, sent.isEmpty else { return }
    mode = .closed
    publish(EngineFence(term: lease.term, opener: opener, .closed)) { [self] result in
      guard let done = closing.take() else { return }
      if case .failure(let error) = result {
        done(StoreError(error, "shard \(names.shard) can't be marked as closed"))
      } else {
        done(nil)
      }
    }
  }
}

extension EventLoop {
  /// Runs `job` in a turn to come. On the loop only.
  func soon(_ job: @escaping () -> Void) { _ = schedule(after: .zero, job) }
}
