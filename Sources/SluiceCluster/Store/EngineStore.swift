import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire

/// The store of one shard on JetStream.
///
/// A commit is one message for each topic that it changes, in an atomic batch if there are several. Its first message expects the stream's last sequence as
/// it will be when the earlier commits are stored, so several commits can be in progress.
///
/// ```
///   commit ──► ShardTopics (extents) ──► CommitPipeline ── messages ──► engine ── acknowledged ──► ShardTopics (stored) ──► settled
///                                                                         └────── anything else ──► OutcomeResolution
/// ```
///
/// These are values, as are ``OwnerFence``, ``CheckpointSchedule`` and ``EngineSpace``; this class performs their decisions at the engine. Failures,
/// checkpoints and space, and reading are in extensions.
///
/// **Why this layout.** One message for each commit was the fastest with three replicas: 1.5 to 3 times as many small pipelined commits as with states under
/// subjects of their own, rolled up. Each topic has a subject of its own. Its batches can therefore be read without those of other topics, its old batches
/// purged with one request, and an offset found by bisection without an index of all messages. States are in the same message as batches, so opening must
/// read changes again: checkpoints of the changed topics limit that to ``JetStreamEngineOptions/checkpointBytes``.
///
/// **Why it is safe.** See ``EngineEnvelope`` for which messages count, and ``OutcomeResolution`` for failures. Messages that replace earlier ones
/// (checkpoints) are sent only when no commits are in progress, because a message that doesn't count would otherwise replace one that does. Purges name a
/// sequence below the last front.
// @unchecked: belongs to the client's loop.
final class EngineStore: ShardStore, @unchecked Sendable {
  enum Mode {
    case open
    /// The results of commits are unknown: see ``OutcomeResolution``.
    case resolving
    /// Checkpoints are being written.
    case checkpointing
    /// Another owner has the shard.
    case fenced
    case closed
  }

  let stream: ShardStream
  let loop: any EventLoop
  let names: EngineNames
  let options: JetStreamEngineOptions
  /// The bytes of records in a full commit, which fits one message together with its other content.
  let commitBytes: Int
  private let meter: CommitMeter
  private let lease: ShardLease
  var events: (ShardStoreEvent) -> Void = { _ in }

  var mode = Mode.open
  var fence: OwnerFence
  var topics: ShardTopics
  var pipeline: CommitPipeline
  var resolution: OutcomeResolution
  var checkpoints: CheckpointSchedule
  var space: EngineSpace
  /// Whether more of a topic's front is being read.
  var isReadingFront = false
  var retryTimer: TimerToken?
  private var isAwaitingRoom = false
  /// The checkpoint that is written while the mode is ``Mode/checkpointing``.
  var checkpoint: CheckpointWrite?
  private var closing: (@Sendable (StoreError?) -> Void)?
  /// The approximate size of the stream: the last size that the engine has reported, plus the messages sent since.
  var bytes: UInt64

  init(_ opened: EngineOpening.Result, _ opening: EngineOpening) {
    stream = ShardStream(opening.api, opening.names, opening.reads)
    loop = opening.loop
    names = opening.names
    options = opening.options
    let most = Self.mostBytes(of: opening.api.client, opening.options)
    commitBytes = min(options.commitBytes, most - most / 16)
    meter = opening.meter
    lease = opening.lease
    fence = OwnerFence(term: lease.term, opener: opening.opener, at: opened.fence, opened.fences)
    topics = ShardTopics(opened.topics, next: opened.nextTopic)
    pipeline = CommitPipeline(behind: opened.fence)
    resolution = OutcomeResolution(shard: "\(names.shard)")
    checkpoints = CheckpointSchedule(
      dirty: opened.dirty, changedBytes: opened.changedBytes, front: opened.front,
      bytes: options.checkpointBytes, interval: options.checkpointInterval, now: loop.now)
    space = EngineSpace(deleted: opened.deleted)
    bytes = opened.bytes
    meter.begin(Int(lease.shard.rawValue))
  }

  var limit: Int? { options.limit }
  var depth: Int { options.depth }
  /// An atomic batch may have at most 1,000 messages, and large changes need several.
  static let mostChanges = 256
  var mostChanges: Int { Self.mostChanges }
  var isBlocking: Bool { false }

  func begin(_ events: @escaping @Sendable (ShardStoreEvent) -> Void) { self.events = events }

  /// The most bytes of a message's payload; headers need space, too.
  var mostBytes: Int { Self.mostBytes(of: stream.api.client, options) }
  static func mostBytes(of client: NATSClient, _ options: JetStreamEngineOptions) -> Int {
    max(min(client.maximumPayload - 1_024, options.messageBytes), 1_024)
  }

  /// The last sequence up to which all messages are known.
  var last: UInt64 { pipeline.last }
  /// Bytes of changes behind the last front.
  var changedBytes: Int { checkpoints.changedBytes }

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
      for change in changes { extents.append(try topics.extent(after: change, in: names.stream)) }
    } catch {
      return .settled(error)
    }
    for (change, extent) in zip(changes, extents) { topics.project(change, extent) }
    pipeline.append(PendingCommit(number, changes, extents))
    pump()
    return .underWay
  }

  /// Sends the commits that may be sent.
  func pump() {
    if closing != nil { return finishClosing() }
    while mode == .open {
      if checkpoints.isDue(at: loop.now) {
        // Checkpoints are written alone.
        if pipeline.sent.isEmpty { beginCheckpoint() }
        return
      }
      guard let next = pipeline.waiting.first, pipeline.sent.count < depth, hasRoom() else { return }
      switch pipeline.nextMessages(under: fence.sequence, topics, names, atMost: mostBytes) {
      case .unknownFront(let topic, let offset): return readFront(of: topic, behind: offset)
      case .ready(let messages):
        let size = messages.reduce(0) { $0 + $1.payloadCount }
        if let refusal = refusal(of: next, bytes: size) {
          // Earlier commits settle first.
          guard pipeline.sent.isEmpty else { return }
          return loop.soon { [self] in if pipeline.sent.isEmpty, mode == .open { fail(refusal) } }
        }
        send(messages, bytes: size)
      }
    }
  }

  /// Whether the connection has sent enough for another commit. If not, sending continues when it has.
  private func hasRoom() -> Bool {
    let client = stream.api.client
    guard client.backlog > options.backlogBytes else { return true }
    guard !isAwaitingRoom else { return false }
    isAwaitingRoom = true
    client.whenBacklog(isAtMost: options.backlogBytes) { [weak self] in
      self?.isAwaitingRoom = false
      self?.pump()
    }
    return false
  }

  /// Why there is no space for a commit with records.
  private func refusal(of pending: PendingCommit, bytes size: Int) -> StoreError? {
    guard let limit, pending.changes.contains(where: { !$0.batches.isEmpty }) else { return nil }
    guard bytes + UInt64(size) > UInt64(limit) else { return nil }
    return StoreError(
      .full,
      "shard \(names.shard) has \(bytes) bytes, and may have \(limit); delete topics or lower their limits")
  }

  /// Sends the first waiting commit.
  private func send(_ messages: [NATSMessage], bytes size: Int) {
    let expected = pipeline.predicted
    let pending = pipeline.send(messages.count, at: loop.now)
    topics.sent(pending)
    if messages.isEmpty { return loop.soon { [self] in settleStored() } }
    var messages = messages
    if options.flaw != .noFence, options.flaw != .blindRetry {
      messages[0].headers.expectLastSequence(expected)
    }
    checkpoints.sent(size)
    bytes += UInt64(size)
    if options.flaw == .earlyAnswer, !pending.isAnswered {
      pipeline.answeredEarly(pending.number)
      loop.soon { [self] in
        apply(pending)
        events(.settled(pending.number, nil))
      }
    }
    let (number, fence) = (pending.number, fence.sequence)
    stream.commit(messages) { [self] in answered(number, under: fence, $0) }
  }

  private func answered(
    _ number: UInt64, under fence: UInt64, _ result: Result<PublishAcknowledgement, NATSError>
  ) {
    // A barrier has settled the result.
    guard fence == self.fence.sequence, mode != .fenced, mode != .closed,
      let pending = pipeline.unanswered(number)
    else { return }
    switch result {
    case .success(let acknowledgement)
    where acknowledgement.sequence == pending.last || options.flaw == .noFence || options.flaw == .blindRetry:
      pipeline.acknowledged(number)
      meter.note(Int(lease.shard.rawValue), loop.now - pending.sentAt)
      settleStored()
    case .success(let acknowledgement):
      lost(NATSError(.malformedAnswer, "a commit has sequence \(acknowledgement.sequence)"))
    case .failure(let error):
      pipeline.failed(number, error)
      lost(error)
    }
  }

  /// Settles stored commits in order, up to the first that isn't stored.
  func settleStored() {
    guard mode != .fenced, mode != .closed else { return }
    while let stored = pipeline.takeStored() {
      if stored.isAnswered { continue }
      apply(stored)
      events(.settled(stored.number, nil))
    }
    pump()
  }

  private func apply(_ pending: PendingCommit) {
    for (index, change) in pending.changes.enumerated() where !change.isNothing {
      let extent = pending.sentExtents[index]
      checkpoints.changed(change.topic)
      topics.take(change, extent, at: pending.firstSequences[index])
      if extent == nil {
        space.deleted(change.topic)
      } else if change.truncateBefore != nil {
        space.truncated(change.topic)
      }
    }
  }

  /// Fails all waiting commits.
  func fail(_ error: StoreError) {
    let failed = pipeline.takeWaiting()
    topics.failed(failed)
    for pending in failed where !pending.isAnswered { events(.settled(pending.number, error)) }
  }

  private var refusal: StoreError? {
    switch mode {
    case .fenced: fencedError
    case .closed: StoreError(.failed, "shard \(names.shard) is closed")
    default: nil
    }
  }

  var fencedError: StoreError {
    StoreError(.fenced, "shard \(names.shard) has another owner now; this one had term \(lease.term)")
  }

  func fenced() {
    guard mode != .fenced, mode != .closed else { return }
    mode = .fenced
    loop.cancel(&retryTimer)
    pipeline = CommitPipeline(behind: pipeline.last)
    events(.fenced(fencedError))
    closing.take()?(fencedError)
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

  /// Marks the stream as closed. No commits are in progress.
  private func finishClosing() {
    guard mode == .open, pipeline.isEmpty else { return }
    mode = .closed
    stream.write(fence.message(.closed), expecting: pipeline.last) { [self] result in
      guard let done = closing.take() else { return }
      if case .failure(let error) = result {
        done(StoreError(error, "shard \(names.shard) can't be marked as closed"))
      } else {
        done(nil)
      }
    }
  }
}
