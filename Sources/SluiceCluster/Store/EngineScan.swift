import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire

/// Puts changes and checkpoints together whose bodies are in several messages, which follow each other.
struct PartAssembly {
  private var body: [UInt8] = []
  private var envelope: EngineEnvelope?
  private var sequence: UInt64 = 0

  /// Whether a body has begun that isn't complete.
  var isOpen: Bool { envelope != nil }

  /// Takes the next message.
  ///
  /// - Parameters:
  ///   - envelope: the message's.
  ///   - rest: what follows it.
  ///   - sequence: the message's.
  ///   - whole: gets the body and the sequence of its first message when it is complete.
  mutating func take(
    _ envelope: EngineEnvelope, _ rest: UnsafeRawBufferPointer, at sequence: UInt64,
    _ whole: (UnsafeRawBufferPointer, UInt64) throws(StoreError) -> Void
  ) throws(StoreError) {
    if envelope.parts == 1 {
      self.envelope = nil
      return try unsafe whole(rest, sequence)
    }
    if envelope.part == 0 {
      body = []
      self.sequence = sequence
    } else {
      var expected = self.envelope
      expected?.part += 1
      // Reading has begun in the middle of a body.
      guard expected == envelope else { return self.envelope = nil }
    }
    unsafe body.append(contentsOf: rest)
    guard envelope.part == envelope.parts - 1 else { return self.envelope = envelope }
    self.envelope = nil
    let first = self.sequence
    let complete = body
    body = []
    try unsafe complete.span.withUnsafeBytes { bytes throws(StoreError) in try unsafe whole(bytes, first) }
  }
}

/// Reads the batches of a topic in the order of their sequences, from any of the stream's replicas.
///
/// On the store's loop.
@safe
final class BatchScan {
  /// How often a replica that hasn't the newest messages yet is asked again.
  private static let patience = 100

  private let topic: TopicID
  private let store: EngineStore
  private var next: UInt64
  private var parts = PartAssembly()
  private var bytes = 0
  private var each: (BatchHeader, UInt64, UnsafeRawBufferPointer) -> Bool = { _, _, _ in false }
  private var done: (StoreError?) -> Void = { _ in }
  private var isEnough = false
  private var fault: StoreError?
  private var stale = 0
  /// The offset of the next batch; nil before the first one.
  private var expected: UInt64?

  /// - Parameter sequence: where to begin.
  init(_ topic: TopicID, from sequence: UInt64, _ store: EngineStore) {
    self.topic = topic
    self.store = store
    next = sequence
  }

  /// - Parameters:
  ///   - bytes: about how many bytes a request may ask for.
  ///   - each: gets a batch's header, the sequence of its change, and the batch; returns whether it wants another one.
  ///   - done: called once; with what kept the batches from being read.
  func run(
    bytes: Int, _ each: @escaping (BatchHeader, UInt64, UnsafeRawBufferPointer) -> Bool,
    _ done: @escaping (StoreError?) -> Void
  ) {
    self.bytes = bytes
    unsafe self.each = unsafe each
    self.done = done
    page()
  }

  private func page() {
    guard let known = store.topics[topic], next <= known.last || parts.isOpen else { return finish(nil) }
    do throws(NATSError) {
      try store.api.messages(
        of: store.names.stream, matching: store.names.changes(of: topic), from: next,
        count: bytes < 1 << 16 ? 4 : 256, maximumBytes: min(max(bytes, 1 << 16), 4 << 20),
        each: { [self] in take($0) }
      ) { [self] in ended($0) }
    } catch {
      let unsent = error
      store.loop.soon { [self] in ended(.failure(unsent)) }
    }
  }

  private func take(_ message: StoredMessageView) {
    guard !isEnough, fault == nil else { return }
    next = message.sequence + 1
    do throws(StoreError) {
      var reader = unsafe ByteReader(message.payload.memory)
      let envelope = try EngineEnvelope(&reader)
      guard envelope.kind == .change, store.fences.counts(message.sequence, under: envelope.fence) else {
        return
      }
      try unsafe parts.take(envelope, reader.remaining, at: message.sequence) {
        body, sequence throws(StoreError) in
        let change = try unsafe EngineChange(body)
        // One that doesn't follow doesn't count: see ``FenceTable/note(_:under:)``.
        if let first = change.batches.first?.header.firstOffset, let expected, first != expected { return }
        for batch in change.batches {
          expected = batch.header.endOffset
          let bytes = unsafe UnsafeRawBufferPointer(rebasing: body[batch.place])
          guard unsafe each(batch.header, sequence, bytes) else { return isEnough = true }
        }
      }
    } catch {
      fault = error
    }
  }

  private func ended(_ result: Result<ReadPage, NATSError>) {
    if let fault { return finish(fault) }
    if isEnough { return finish(nil) }
    switch result {
    case .failure(let error):
      finish(StoreError(error, "topic \(topic.rawValue) of shard \(store.names.shard) can't be read"))
    case .success(let page):
      guard page.pending == 0, let known = store.topics[topic], next <= known.last || parts.isOpen else {
        stale = 0
        return self.page()
      }
      // This replica hasn't got the last batches yet.
      stale += 1
      guard stale < Self.patience else {
        return finish(
          StoreError(.unavailable, "the replicas of \(store.names.stream) are far behind; try again"))
      }
      _ = store.loop.schedule(after: .milliseconds(10)) { self.page() }
    }
  }

  private func finish(_ error: StoreError?) {
    let done = done
    unsafe each = { _, _, _ in false }
    self.done = { _ in }
    done(error)
  }
}

/// A read of a topic's batches from an offset on.
///
/// Where the index doesn't know the offset, its message is found by bisection over the stream's sequences.
// @unchecked: belongs to the store's loop.
@safe
final class EngineRead: @unchecked Sendable {
  private let topic: TopicID
  private let offset: UInt64
  private let bytes: Int
  private let store: EngineStore
  private let each: (UInt64, UnsafeRawBufferPointer) -> Bool
  private let done: (StoreError?) -> Void
  private var expected: UInt64?

  init(
    _ topic: TopicID, from offset: UInt64, bytes: Int, _ store: EngineStore,
    _ each: @escaping (UInt64, UnsafeRawBufferPointer) -> Bool, _ done: @escaping (StoreError?) -> Void
  ) {
    self.topic = topic
    self.offset = offset
    self.bytes = bytes
    self.store = store
    unsafe self.each = unsafe each
    self.done = done
  }

  func run() {
    guard let known = store.topics[topic], known.isStored, offset < known.extent.head,
      known.extent.firstOffset < known.extent.head
    else { return done(nil) }
    let target = max(offset, known.extent.firstOffset)
    if let entry = known.index.entries(from: target).first, entry.sequence > 0 {
      guard entry.isLarge else { return scan(from: entry.sequence) }
      let span = known.index.span(of: entry, last: known.last)
      return bisect(span.lowerBound, span.upperBound, target)
    }
    let gap = known.index.gap(around: target, floor: known.floor, last: known.last)
    bisect(gap.lowerBound, gap.upperBound, target)
  }

  /// The message is at `low` or behind it, and not behind `high`.
  private func bisect(_ low: UInt64, _ high: UInt64, _ target: UInt64) {
    guard high > low + 8 else { return scan(from: low) }
    let middle = low + (high - low) / 2
    var found: (header: BatchHeader, sequence: UInt64)?
    var end: UInt64 = 0
    unsafe BatchScan(topic, from: middle, store).run(
      bytes: 1,
      { header, sequence, _ in
        guard let first = found else {
          found = (header, sequence)
          end = header.endOffset
          return true
        }
        // Other batches of the same change.
        guard first.sequence == sequence else { return false }
        end = header.endOffset
        return true
      }
    ) { [self] error in
      if let error { return done(error) }
      guard let found, found.sequence <= high, found.header.firstOffset <= target else {
        return bisect(low, middle - 1, target)
      }
      if end > target {
        scan(from: found.sequence)
      } else {
        bisect(found.sequence + 1, max(high, found.sequence + 1), target)
      }
    }
  }

  private func scan(from sequence: UInt64) {
    let target = offset
    unsafe BatchScan(topic, from: sequence, store).run(
      bytes: bytes,
      { [self] header, _, value in
        guard let extent = store.topics[topic]?.extent else { return false }
        if header.endOffset <= max(target, extent.firstOffset) { return true }
        guard header.endOffset <= extent.head, header.firstOffset == expected ?? header.firstOffset else {
          return false
        }
        expected = header.endOffset
        return unsafe each(header.firstOffset, value)
      }, done)
  }
}

/// Finds the first record with a time or a later one, as ``TopicStore/offset(in:atOrAfter:)`` does.
// @unchecked: belongs to the store's loop.
final class EngineSearch: @unchecked Sendable {
  private let time: Int64
  private let topic: TopicID
  private let store: EngineStore
  private let done: (Result<UInt64?, StoreError>) -> Void
  private var low: UInt64 = 0
  private var high: UInt64 = 0
  private var found: UInt64?

  init(
    _ time: Int64, in topic: TopicID, _ store: EngineStore,
    _ done: @escaping (Result<UInt64?, StoreError>) -> Void
  ) {
    self.time = time
    self.topic = topic
    self.store = store
    self.done = done
  }

  func run() {
    guard let known = store.topics[topic], known.isStored else { return done(.success(nil)) }
    low = known.extent.firstOffset
    high = known.extent.head
    step()
  }

  /// The first batch that ends at that time or later holds the record.
  private func step() {
    guard low < high else { return done(.success(found)) }
    let middle = low + (high - low) / 2
    var probe: (header: BatchHeader, first: UInt64?)?
    let read = unsafe EngineRead(
      topic, from: middle, bytes: 1, store,
      { [self] offset, bytes in
        guard let batch = unsafe BatchView(bytes, of: topic, at: offset) else { return true }
        probe = (batch.header, batch.firstOffset(atOrAfter: time))
        return false
      }
    ) { [self] error in
      if let error { return done(.failure(error)) }
      if let probe, probe.header.firstOffset < high {
        if let first = probe.first {
          found = first
          high = min(middle, probe.header.firstOffset)
        } else {
          low = probe.header.endOffset
        }
      } else {
        high = middle
      }
      // A new turn, since a read may complete at once.
      store.loop.soon { [self] in step() }
    }
    read.run()
  }
}
