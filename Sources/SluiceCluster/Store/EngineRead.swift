import SluiceStore

/// A read of a topic's batches from an offset on.
///
/// If the index doesn't contain the offset, its message is found by bisection over the stream's sequences.
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

  /// Finds the message between `low` and `high`, inclusive.
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

/// Finds the first record with a time or a later one, as ``TopicStore/offset(in:atOrAfter:within:)`` does.
// @unchecked: belongs to the store's loop.
final class EngineSearch: @unchecked Sendable {
  private let time: Int64
  private let topic: TopicID
  private let span: Range<UInt64>
  private let store: EngineStore
  private let done: (Result<UInt64?, StoreError>) -> Void
  private var low: UInt64 = 0
  private var high: UInt64 = 0
  private var found: UInt64?

  init(
    _ time: Int64, in topic: TopicID, within span: Range<UInt64>, _ store: EngineStore,
    _ done: @escaping (Result<UInt64?, StoreError>) -> Void
  ) {
    self.time = time
    self.topic = topic
    self.span = span
    self.store = store
    self.done = done
  }

  func run() {
    guard let known = store.topics[topic], known.isStored else { return done(.success(nil)) }
    low = max(known.extent.firstOffset, span.lowerBound)
    high = min(known.extent.head, span.upperBound)
    step()
  }

  /// The first batch that ends at that time or later contains the record.
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
      // In a new turn, since a read may complete at once.
      store.loop.soon { [self] in step() }
    }
    read.run()
  }
}
