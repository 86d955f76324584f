import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire

/// Assembles the bodies of changes and checkpoints from several consecutive messages.
struct PartAssembly {
  private var body: [UInt8] = []
  private var envelope: EngineEnvelope?
  private var sequence: UInt64 = 0

  /// Whether a body has begun and isn't complete.
  var isOpen: Bool { envelope != nil }

  /// Takes the next message.
  ///
  /// - Parameters:
  ///   - envelope: the message's envelope.
  ///   - rest: the bytes after the envelope.
  ///   - sequence: the message's sequence.
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
      // Reading began in the middle of a body.
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
  /// How many times a replica without the newest messages is asked again.
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

  /// - Parameter sequence: the sequence at which to begin.
  init(_ topic: TopicID, from sequence: UInt64, _ store: EngineStore) {
    self.topic = topic
    self.store = store
    next = sequence
  }

  /// - Parameters:
  ///   - bytes: about how many bytes a request may return.
  ///   - each: gets a batch's header, the sequence of its change, and the batch; returns whether to continue.
  ///   - done: called once, with the error if the batches couldn't be read.
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
    store.stream.read(
      store.names.changes(of: topic), from: next, count: bytes < 1 << 16 ? 4 : 256,
      maximumBytes: min(max(bytes, 1 << 16), 4 << 20), each: { [self] in take($0) }
    ) { [self] in ended($0) }
  }

  private func take(_ message: StoredMessageView) {
    guard !isEnough, fault == nil else { return }
    next = message.sequence + 1
    do throws(StoreError) {
      var reader = unsafe ByteReader(message.payload.memory)
      let envelope = try EngineEnvelope(&reader)
      guard envelope.kind == .change, store.fence.counts(message.sequence, under: envelope.fence) else {
        return
      }
      try unsafe parts.take(envelope, reader.remaining, at: message.sequence) {
        body, sequence throws(StoreError) in
        let change = try unsafe EngineChange(body)
        // Skips an invalid batch, which doesn't follow the previous one: see ``FenceTable/note(_:under:)``.
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
      // This replica doesn't have the last batches yet.
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
