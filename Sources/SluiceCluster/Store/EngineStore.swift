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

  /// A commit that isn't settled.
  final class Pending {
    let number: UInt64
    let changes: [TopicChange]
    /// The topics' extents after it, without what it drops. Nil for a deletion.
    let extents: [StoredExtent?]
    /// The same with what it drops, as of the last time that it was sent.
    var sentExtents: [StoredExtent?] = []
    /// The sequence of its last message.
    var last: UInt64 = 0
    var firstSequences: [UInt64] = []
    var isStored = false
    /// When it was sent last.
    var sentAt = MonotonicTime(nanoseconds: 0)
    var error: NATSError?

    init(_ number: UInt64, _ changes: [TopicChange], _ extents: [StoredExtent?]) {
      self.number = number
      self.changes = changes
      self.extents = extents
    }
  }

  let api: JetStream
  let loop: any EventLoop
  let names: EngineNames
  let options: JetStreamEngineOptions
  private let meter: CommitMeter
  let lease: ShardLease
  /// This life of the owner.
  let opener: UInt64
  private var events: (ShardStoreEvent) -> Void = { _ in }

  var mode = Mode.open
  var fences: FenceTable
  /// The sequence of the fence under which messages are sent.
  var fence: UInt64
  var topics: [TopicID: EngineTopic]
  private var nextTopic: TopicID
  /// The last sequence of which everything is known.
  var last: UInt64
  /// The last sequence when everything that was sent is stored.
  private var predicted: UInt64
  private var queue: [Pending] = []
  private var sent: [Pending] = []
  private var isReadingFront = false
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
  private var checkpoint: [[NATSMessage]] = []
  /// Whether space can be freed behind the last front only.
  private var isCheckpointWanted = false
  /// Topics of which batches may be purged, and those that are deleted.
  private var truncated: Set<TopicID> = []
  private var deleted: Set<TopicID>
  private var isPurging = false
  private var closing: (@Sendable (StoreError?) -> Void)?
  /// Bytes of the stream, about: what was sent since the engine told them last is counted here.
  private var bytes: UInt64

  init(_ opened: EngineOpening.Result, _ opening: EngineOpening) {
    api = opening.api
    loop = opening.loop
    names = opening.names
    options = opening.options
    meter = opening.meter
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
    deleted = opened.deleted
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
    var extents: [StoredExtent?] = []
    do throws(StoreError) {
      for change in changes { extents.append(try extent(after: change)) }
    } catch {
      return .settled(error)
    }
    for (change, extent) in zip(changes, extents) { project(change, extent) }
    queue.append(Pending(number, changes, extents))
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
  private func refusal(of pending: Pending, _ messages: [NATSMessage]) -> StoreError? {
    guard let limit, pending.changes.contains(where: { !$0.batches.isEmpty }) else { return nil }
    let size = messages.reduce(0) { $0 + $1.payload.count }
    guard bytes + UInt64(size) > UInt64(limit) else { return nil }
    return StoreError(
      .full,
      "shard \(names.shard) has \(bytes) bytes, and may have \(limit); delete topics or lower their limits")
  }

  /// A commit's messages, as they would be sent next. Nil when it has to be found out first where a topic begins.
  private func messages(of pending: Pending) -> [NATSMessage]? {
    var beginnings: [EngineChange.Beginning?] = []
    var extents = pending.extents
    for (index, change) in pending.changes.enumerated() {
      guard var extent = extents[index], let topic = topics[change.topic] else {
        beginnings.append(nil)
        continue
      }
      extent.firstOffset = max(extent.firstOffset, topic.sentBeginning.firstOffset)
      extent.bytesBefore = max(extent.bytesBefore, topic.sentBeginning.bytesBefore)
      var beginning: EngineChange.Beginning?
      if let offset = change.truncateBefore {
        switch topic.index.cut(before: offset, extent) {
        case .at(let found): beginning = found.firstOffset > extent.firstOffset ? found : nil
        case .unknown:
          readFront(of: change.topic, behind: offset)
          return nil
        }
      }
      if let beginning {
        extent.firstOffset = beginning.firstOffset
        extent.bytesBefore = beginning.bytesBefore
      }
      extents[index] = extent
      beginnings.append(beginning)
    }
    pending.sentExtents = extents
    var messages: [NATSMessage] = []
    pending.firstSequences = []
    for (index, change) in pending.changes.enumerated() {
      pending.firstSequences.append(predicted + UInt64(messages.count) + 1)
      if change.isNothing { continue }
      let subject = names.changes(of: change.topic)
      for payload in EngineChange.payloads(
        of: change, beginnings[index], fence: fence, commit: pending.number, atMost: mostBytes)
      {
        messages.append(NATSMessage(subject: subject, payload: payload))
      }
    }
    return messages
  }

  private func send(_ pending: Pending, _ messages: [NATSMessage]) {
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
    do throws(NATSError) {
      try api.commit(messages, to: names.stream) { [self] in answered(pending, under: fence, $0) }
    } catch {
      let unsent = error
      loop.soon { [self] in answered(pending, under: fence, .failure(unsent)) }
    }
  }

  private func answered(
    _ pending: Pending, under fence: UInt64, _ result: Result<PublishAcknowledgement, NATSError>
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
      apply(first)
      events(.settled(first.number, nil))
    }
    pump()
  }

  private func apply(_ pending: Pending) {
    for (index, change) in pending.changes.enumerated() where !change.isNothing {
      nextTopic = max(nextTopic, TopicID(rawValue: change.topic.rawValue + 1))
      dirty.insert(change.topic)
      guard let extent = pending.sentExtents[index] else {
        topics[change.topic] = nil
        deleted.insert(change.topic)
        continue
      }
      topics[change.topic]?.take(change, extent, at: pending.firstSequences[index])
      if change.truncateBefore != nil { truncated.insert(change.topic) }
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
    checkpoint = []
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
    for pending in failed { events(.settled(pending.number, error)) }
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
      try api.messages(
        of: names.stream, matching: names.all, from: sequence, count: 256, maximumBytes: 4 << 20, each: each,
        done)
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
    var messages: [NATSMessage] = []
    for id in dirty.sorted() {
      let state = topics[id].flatMap { $0.isStored ? $0 : nil }
      let payloads = TopicCheckpoint(id, state).payloads(fence: fence, atMost: mostBytes)
      for (part, payload) in payloads.enumerated() {
        messages.append(NATSMessage(subject: names.checkpoint(of: id, part: part), payload: payload))
      }
    }
    messages.append(
      NATSMessage(subject: names.front, payload: EngineFront(nextTopic: nextTopic).message(fence: fence)))
    for index in messages.indices { messages[index].headers.rollUp(.subject) }
    checkpoint = []
    while !messages.isEmpty {
      checkpoint.append(Array(messages.prefix(500)))
      messages.removeFirst(min(500, messages.count))
    }
    goOnWithCheckpoint()
  }

  private func goOnWithCheckpoint() {
    guard mode == .checkpointing else { return }
    guard !checkpoint.isEmpty else {
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
      return pump()
    }
    var messages = checkpoint.removeFirst()
    messages[0].headers.expectLastSequence(last)
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

  // MARK: Space

  func reclaim() throws(StoreError) -> Bool {
    purge()
    if !isPurging, !(truncated.isEmpty && deleted.isEmpty), !dirty.isEmpty {
      isCheckpointWanted = true
      pump()
    }
    return false
  }

  /// Purges a topic's batches that no change needs any more: one at a time, below the last front.
  private func purge() {
    guard !isPurging, mode == .open || mode == .resolving, front > 0 else { return }
    if let id = deleted.first(where: { !dirty.contains($0) }) {
      return purge([names.changes(of: id), names.checkpoints(of: id)], before: front) { [self] in
        deleted.remove(id)
      }
    }
    for id in truncated {
      guard let topic = topics[id] else {
        truncated.remove(id)
        continue
      }
      guard let sequence = topic.firstNeeded else { continue }
      guard sequence > topic.floor else {
        truncated.remove(id)
        continue
      }
      // Behind the front, changes are read when the shard is opened.
      let end = min(sequence, front)
      guard end > topic.floor else { continue }
      return purge([names.changes(of: id)], before: end) { [self] in
        topics[id]?.floor = end
        if end == sequence { truncated.remove(id) }
      }
    }
  }

  private func purge(_ subjects: [String], before sequence: UInt64, _ done: @escaping () -> Void) {
    guard let subject = subjects.first else {
      isPurging = false
      done()
      learnSize()
      return purge()
    }
    isPurging = true
    let rest = Array(subjects.dropFirst())
    do throws(NATSError) {
      try api.purge(names.stream, matching: subject, before: sequence) { [self] result in
        // Another time, then.
        guard case .success = result, mode != .fenced, mode != .closed else { return isPurging = false }
        purge(rest, before: sequence, done)
      }
    } catch {
      isPurging = false
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

  // MARK: Reading

  /// What is stored.
  var contents: StoreContents {
    let stored = topics.filter(\.value.isStored).map {
      StoreContents.Topic(id: $0, row: $1.row, extent: $1.extent)
    }
    return StoreContents(topics: stored.sorted { $0.id < $1.id }, nextTopic: nextTopic, wasClosed: false)
  }

  func states(of topic: TopicID, _ kind: StoredState.Kind) -> [StoredState] {
    guard let known = topics[topic], known.isStored else { return [] }
    return known.states(kind)
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? {
    topics[topic].flatMap { $0.isStored ? $0.extent : nil }
  }

  func headers(of topic: TopicID, from offset: UInt64, _ body: (BatchHeader) -> Bool) throws(StoreError) {
    guard let known = topics[topic], offset < known.extent.head else { return }
    let entries = known.index.entries(from: max(offset, known.extent.firstOffset))
    if entries.isEmpty { readFront(of: topic, behind: offset) }
    for entry in entries where entry.header.endOffset <= known.extent.head {
      guard body(entry.header) else { return }
    }
  }

  /// Makes known where the topic's oldest batches are, up to the one that holds the record with that offset.
  private func readFront(of id: TopicID, behind offset: UInt64) {
    guard !isReadingFront, let topic = topics[id] else { return }
    isReadingFront = true
    let scan = BatchScan(id, from: topic.index.frontEnd(floor: topic.floor), self)
    // What comes next is asked for soon.
    var ahead = 64
    unsafe scan.run(
      bytes: 4 << 20,
      { [self] header, sequence, _ in
        guard header.endOffset > topics[id]?.extent.firstOffset ?? .max else { return true }
        topics[id]?.index.extendFront(.init(header: header, sequence: sequence))
        if header.endOffset > offset { ahead -= 1 }
        return ahead > 0
      }
    ) { [self] error in
      isReadingFront = false
      guard mode != .fenced, mode != .closed else { return }
      if error == nil { return pump() }
      _ = loop.schedule(after: .milliseconds(50)) { [weak self] in self?.pump() }
    }
  }

  func read(
    _ topic: TopicID, from offset: UInt64, bytes: Int,
    each: @escaping @Sendable (UInt64, UnsafeRawBufferPointer) -> Bool,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    loop.execute { [self] in
      unsafe EngineRead(topic, from: offset, bytes: bytes, self, each, done).run()
    }
  }

  func find(
    _ time: Int64, in topic: TopicID, _ done: @escaping @Sendable (Result<UInt64?, StoreError>) -> Void
  ) {
    loop.execute { [self] in EngineSearch(time, in: topic, self, done).run() }
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

extension TopicChange {
  /// Whether there is nothing to be stored.
  fileprivate var isNothing: Bool {
    !isDeletion && row == nil && batches.isEmpty && states.isEmpty && truncateBefore == nil
  }
}

extension EngineTopic {
  /// Takes a change that is stored.
  fileprivate mutating func take(_ change: TopicChange, _ after: StoredExtent, at sequence: UInt64) {
    if let row = change.row { self.row = row }
    for state in change.states { set(state) }
    extent = after
    // What was dropped may be needed while the change is under way, and not after it.
    index.drop(before: after.firstOffset)
    isStored = true
    if !change.batches.isEmpty {
      if last == 0 { floor = sequence }
      last = max(last, sequence)
    }
  }
}

extension EventLoop {
  /// Runs `job` in a turn to come. On the loop only.
  func soon(_ job: @escaping () -> Void) { _ = schedule(after: .zero, job) }
}
