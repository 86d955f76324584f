import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire

/// Opens a shard's stream for a new owner.
///
/// ```
///   last sequence, last fence ─► own fence, expecting that sequence ─► fences and checkpoints ─► changes behind the front
/// ```
///
/// If the last fence closes the stream, it is usually the last message, and the own fence expects its sequence at once. A message of a former owner may
/// follow it, see ``FenceTable/note(_:under:)``: the own fence is then refused, and the second attempt looks up the last sequence.
///
/// The acknowledgement of the own fence ends the term of a former owner, and is the sequence up to which everything must be read: replicas that don't have it
/// yet are asked again. Nothing is decided before the acknowledgement.
// @unchecked: belongs to the client's loop.
final class EngineOpening: @unchecked Sendable {
  struct Result {
    var fences = FenceTable()
    var fence: UInt64 = 0
    var front: UInt64 = 0
    var topics: [TopicID: EngineTopic] = [:]
    var nextTopic = TopicID(rawValue: 1)
    var dirty: Set<TopicID> = []
    var deleted: Set<TopicID> = []
    var changedBytes = 0
    var wasClosed = true
    /// Bytes of the stream.
    var bytes: UInt64 = 0
  }

  let api: JetStream
  let loop: any EventLoop
  let names: EngineNames
  let meter: CommitMeter
  let reads: StreamReads
  let options: JetStreamEngineOptions
  let lease: ShardLease
  let opener: UInt64
  private let done: (Swift.Result<OpenedShard, StoreError>) -> Void
  private let deadline: MonotonicTime
  private var result = Result()
  private var parts = PartAssembly()
  /// The replica or leader from which messages are read next.
  private var reader = StreamReads.Reader.anyReplica
  private var checkpoints: [TopicID: UInt64] = [:]
  private var next: UInt64 = 1
  private var fault: StoreError?
  private var isRead = false
  private var isSizeKnown = false
  private var isReadingSize = false
  private var isFinished = false
  /// Whether the first attempt has failed.
  private var isRepeated = false

  /// - Parameter opener: a random number that no other opening of the shard has.
  init(
    _ api: JetStream, _ lease: ShardLease, opener: UInt64, _ options: JetStreamEngineOptions,
    _ meter: CommitMeter, _ reads: StreamReads,
    _ done: @escaping (Swift.Result<OpenedShard, StoreError>) -> Void
  ) {
    var api = api
    api.timeout = options.timeout
    self.api = api
    loop = api.client.loop
    names = EngineNames(shard: lease.shard)
    self.lease = lease
    self.opener = opener
    self.options = options
    self.meter = meter
    self.reads = reads
    self.done = done
    deadline = loop.now + options.openTimeout
  }

  // MARK: The fence

  func run() {
    result.fences.countsEverything = options.flaw == .noFence
    if isRepeated { return findLast() }
    readFence { [self] sequence, last in
      guard last?.what == .closed else { return findLast() }
      writeFence(behind: sequence)
      readSize()
    }
  }

  /// Queries the size of the stream, in parallel with the other requests.
  private func readSize() {
    guard !isSizeKnown, !isReadingSize else { return }
    isReadingSize = true
    do throws(NATSError) {
      try api.streamInfo(names.stream) { [self] answer in
        isReadingSize = false
        switch answer {
        case .success(let info): sizeIsKnown(info)
        case .failure(let error): wait(error) { [self] in readSize() }
        }
      }
    } catch {
      isReadingSize = false
      wait(error) { [self] in readSize() }
    }
  }

  private func sizeIsKnown(_ info: StreamInfo) {
    result.bytes = info.state.bytes
    isSizeKnown = true
    finishOpening()
  }

  /// Finds the stream's last sequence, then its last fence. If a message is stored in between, the engine refuses the own fence.
  private func findLast() {
    attempt { [self] () throws(NATSError) in
      try api.streamInfo(names.stream) { [self] result in
        switch result {
        case .success(let info):
          sizeIsKnown(info)
          expectFence(before: info.state.lastSequence)
        case .failure(let error) where error.code == .streamNotFound: create()
        case .failure(let error): tryAgain(error)
        }
      }
    }
  }

  private func create() {
    attempt { [self] () throws(NATSError) in
      try api.createStream(options.stream(names)) { [self] result in
        switch result {
        case .success(let info):
          sizeIsKnown(info)
          expectFence(before: info.state.lastSequence)
        case .failure(let error): tryAgain(error)
        }
      }
    }
  }

  private func expectFence(before last: UInt64) {
    readFence { [self] _, _ in writeFence(behind: last) }
  }

  /// Reads the last fence from the leader.
  ///
  /// - Parameter then: gets its sequence, and the fence; nil if there is none, or no stream.
  private func readFence(_ then: @escaping (UInt64, EngineFence?) -> Void) {
    attempt { [self] () throws(NATSError) in
      try api.leaderMessage(.last(subject: names.fence), of: names.stream) { [self] result in
        switch result {
        case .success(let message):
          do throws(StoreError) {
            let fence = try EngineFence(message.payload)
            guard fence.term <= lease.term else { return finish(.failure(overtaken(by: fence.term))) }
            then(message.sequence, fence)
          } catch {
            finish(.failure(error))
          }
        case .failure(let error) where error.code == .messageNotFound || error.code == .streamNotFound:
          then(0, nil)
        case .failure(let error): tryAgain(error)
        }
      }
    }
  }

  private func overtaken(by term: UInt64) -> StoreError {
    StoreError(
      .fenced, "shard \(names.shard) was opened with term \(term) already; this lease has term \(lease.term)")
  }

  private func writeFence(behind last: UInt64) {
    let fence = EngineFence(term: lease.term, opener: opener, .opened)
    var message = NATSMessage(subject: names.fence, payload: fence.message())
    message.headers.expectLastSequence(last)
    let sent = message
    attempt { [self] () throws(NATSError) in
      try api.publish(sent, to: names.stream) { [self] result in
        switch result {
        case .success(let acknowledgement):
          fenced(at: acknowledgement.sequence)
        case .failure(let error): tryAgain(error)
        }
      }
    }
  }

  private func fenced(at fence: UInt64) {
    result.fence = fence
    next = 1
    read(names.management) { [self] in readChanges() }
  }

  // MARK: Reading

  private func readChanges() {
    guard let own = result.fences.last, own.sequence == result.fence || options.flaw == .staleRead else {
      return finish(.failure(overtaken(by: result.fences.last?.fence.term ?? 0)))
    }
    let before = result.fences.fences.dropLast().last
    result.wasClosed = before.map { $0.fence.what == .closed } ?? true
    next = result.front + 1
    parts = PartAssembly()
    read(names.all) { [self] in
      isRead = true
      finishOpening()
    }
  }

  private func finishOpening() {
    if isRead, isSizeKnown { finish(.success(opened())) }
  }

  /// Reads all matching messages up to the own fence, then calls `then`.
  private func read(_ pattern: String, _ then: @escaping () -> Void) {
    attempt { [self] () throws(NATSError) in
      try reads.messages(
        api, of: names.stream, by: reader, matching: pattern, from: next, count: 512,
        maximumBytes: 4 << 20,
        each: { [self] message in
          guard fault == nil, message.sequence <= result.fence else { return }
          next = message.sequence + 1
          do throws(StoreError) {
            try pattern == names.all ? takeChange(message) : take(message)
          } catch {
            fault = error
          }
        }
      ) { [self] page in
        if let fault { return finish(.failure(fault)) }
        if next > result.fence {
          reader = .anyReplica
          return then()
        }
        if options.flaw == .staleRead, case .success(let page) = page, page.pending == 0 { return then() }
        switch page {
        case .failure(let error): wait(error) { [self] in read(pattern, then) }
        case .success(let page) where page.pending == 0:
          // This replica doesn't have the own fence yet. The leader has it.
          if reader == .anyReplica {
            reader = .leader
            return read(pattern, then)
          }
          reader = .anyReplica
          wait(NATSError(.unavailable, "the replicas of \(names.stream) are far behind")) { [self] in
            read(pattern, then)
          }
        case .success:
          reader = .anyReplica
          read(pattern, then)
        }
      }
    }
  }

  /// Handles a fence, a part of a checkpoint or the front.
  private func take(_ message: StoredMessageView) throws(StoreError) {
    var reader = unsafe ByteReader(message.payload.memory)
    let envelope = try EngineEnvelope(&reader)
    let sequence = message.sequence
    guard envelope.kind != .fence else {
      return result.fences.take(try EngineFence(&reader), at: sequence)
    }
    guard result.fences.counts(sequence, under: envelope.fence) else { return }
    switch envelope.kind {
    case .front:
      result.front = sequence
      result.nextTopic = max(result.nextTopic, try EngineFront(&reader).nextTopic)
    case .checkpoint:
      try unsafe parts.take(envelope, reader.remaining, at: sequence) { body, first throws(StoreError) in
        let checkpoint = try unsafe TopicCheckpoint(body)
        noteTopic(checkpoint.topic)
        checkpoints[checkpoint.topic] = sequence
        guard var state = checkpoint.state else {
          result.deleted.insert(checkpoint.topic)
          return
        }
        state.isStored = true
        result.topics[checkpoint.topic] = state
      }
    default: break
    }
  }

  private func takeChange(_ message: StoredMessageView) throws(StoreError) {
    var reader = unsafe ByteReader(message.payload.memory)
    let envelope = try EngineEnvelope(&reader)
    guard envelope.kind == .change else { return }
    result.fences.note(message.sequence, under: envelope.fence)
    guard result.fences.counts(message.sequence, under: envelope.fence) else { return }
    result.changedBytes += message.payload.count
    try unsafe parts.take(envelope, reader.remaining, at: message.sequence) {
      body, first throws(StoreError) in
      try apply(try unsafe EngineChange(body), at: first)
    }
  }

  private func noteTopic(_ id: TopicID) {
    result.nextTopic = max(result.nextTopic, TopicID(rawValue: id.rawValue &+ 1))
  }

  private func apply(_ change: EngineChange, at sequence: UInt64) throws(StoreError) {
    let id = change.topic
    noteTopic(id)
    if let checkpoint = checkpoints[id], checkpoint > sequence { return }
    result.dirty.insert(id)
    if change.isDeletion {
      result.topics[id] = nil
      result.deleted.insert(id)
      return
    }
    guard var topic = result.topics[id] ?? change.row.map({ EngineTopic(row: $0) }) else {
      throw StoreError(
        .damaged, "\(names.stream) has a change of topic \(id.rawValue) at \(sequence) and no row of it")
    }
    topic.isStored = true
    if let row = change.row { topic.row = row }
    for state in change.states { topic.set(state) }
    for batch in change.batches {
      let header = batch.header
      if topic.extent.head == 0 {
        topic.extent.firstOffset = header.firstOffset
        topic.extent.head = header.firstOffset
        topic.extent.bytesBefore = header.bytesBefore
      }
      let (through, overflow) = header.bytesBefore.addingReportingOverflow(UInt64(header.recordBytes))
      guard header.firstOffset == topic.extent.head, header.endOffset > header.firstOffset, !overflow else {
        throw StoreError(
          .damaged,
          "\(names.stream) has a batch of topic \(id.rawValue) at \(sequence) that doesn't follow on offset \(topic.extent.head)"
        )
      }
      topic.extent.head = header.endOffset
      topic.extent.bytesThrough = through
      topic.extent.lastTime = header.lastTime
      topic.index.append(.init(header: header, sequence: sequence))
    }
    if !change.batches.isEmpty {
      if topic.last == 0 { topic.floor = sequence }
      topic.last = sequence
    }
    if let beginning = change.beginning {
      topic.extent.firstOffset = beginning.firstOffset
      topic.extent.bytesBefore = beginning.bytesBefore
      topic.index.drop(before: beginning.firstOffset)
    }
    result.topics[id] = topic
  }

  private func opened() -> OpenedShard {
    for id in result.topics.keys { result.topics[id]?.forgetProjection() }
    let topics = result.topics
    let contents = StoreContents(
      topics: topics.map { .init(id: $0, row: $1.row, extent: $1.extent) }.sorted { $0.id < $1.id },
      nextTopic: result.nextTopic, wasClosed: result.wasClosed)
    return OpenedShard(EngineStore(result, self), contents: contents) { topic, kind in
      topics[topic]?.states(kind) ?? []
    }
  }

  // MARK: Failures

  private func attempt(_ body: () throws(NATSError) -> Void) {
    do throws(NATSError) {
      try body()
    } catch {
      tryAgain(error)
    }
  }

  /// Starts again. Whether the own fence was stored is unknown, but doesn't matter.
  private func tryAgain(_ error: NATSError) {
    wait(error) { [self] in
      let bytes = result.bytes
      result = Result()
      result.bytes = bytes
      checkpoints = [:]
      parts = PartAssembly()
      isRepeated = true
      run()
    }
  }

  private func wait(_ error: NATSError, _ body: @escaping () -> Void) {
    let time = loop.readClock() + .milliseconds(20)
    guard time < deadline else {
      return finish(.failure(StoreError(error, "shard \(names.shard) can't be opened")))
    }
    _ = loop.schedule(at: time, body)
  }

  private func finish(_ opened: Swift.Result<OpenedShard, StoreError>) {
    guard !isFinished else { return }
    isFinished = true
    done(opened)
  }
}

extension EngineFence {
  /// Reads a whole message.
  fileprivate init(_ payload: [UInt8]) throws(StoreError) {
    self = try unsafe payload.span.withUnsafeBytes { bytes throws(StoreError) -> EngineFence in
      var reader = unsafe ByteReader(bytes)
      let envelope = try EngineEnvelope(&reader)
      guard envelope.kind == .fence else {
        throw StoreError(.damaged, "a fence of the shard's stream is another message")
      }
      return try EngineFence(&reader)
    }
  }
}
