import SluiceIO
import SluiceLog
import Synchronization

/// A part of a topic's records to be read from storage.
package struct StoreRequest: Sendable {
  package let storage: StoreTopicState
  package let offset: UInt64
  /// About how many bytes.
  package let bytes: Int

  /// Reads on another thread, and passes the records to the completion on `loop`.
  package func load(
    of topic: String, on loop: any EventLoop, _ completion: @escaping @Sendable (StoredRecords) -> Void
  ) {
    storage.service.load(storage, topic, from: offset, bytes: bytes, on: loop, completion)
  }
}

/// Reads the records of a durable topic that are no longer in memory, for one reader: one chunk, and the next one ahead of time.
///
/// A value without I/O: it returns requests, and takes their results. A chunk is a segment like those of the log, with the same items, so the same code reads
/// and sends both.
package struct StoreReader: Sendable {
  /// The result of looking up an offset.
  package enum Place {
    /// The chunk contains it.
    case ready(Segment)
    /// It must be loaded; nil while it is being loaded.
    case loading(StoreRequest?)
    /// It was dropped; `next` is the next offset that exists.
    case missed(next: UInt64)
  }

  /// Bytes of the first chunk, and of the largest. The first is small: most late readers need few records, and wait for them.
  static let portions = 64 << 10...1 << 20

  private let storage: StoreTopicState
  private let portions: ClosedRange<Int>
  private var bytes: Int
  /// The chunk that is being read.
  private var loaded: LoadedSegment?
  /// Loaded records that haven't been read yet, and their offset.
  private var ahead: (offset: UInt64, records: StoredRecords)?
  /// The offset from which records are being loaded.
  private var awaited: UInt64?

  init(_ storage: StoreTopicState, portions: ClosedRange<Int>) {
    self.storage = storage
    self.portions = portions
    bytes = portions.lowerBound
  }

  /// The chunk that is being read.
  package var chunk: Segment? { loaded?.segment }

  /// Records before this offset are skipped, even if they are loaded.
  var goneBefore: UInt64 { storage.goneBefore }

  /// Looks for the record with that offset.
  mutating func seek(_ offset: UInt64) -> Place {
    guard offset >= goneBefore else {
      drop()
      return .missed(next: goneBefore)
    }
    if let chunk, chunk.baseOffset <= offset, offset < chunk.endOffset { return .ready(chunk) }
    guard let found = ahead, found.offset == offset else {
      return .loading(awaited == offset ? nil : request(offset))
    }
    ahead = nil
    loaded = found.records.segment
    // A reader that continues gets larger portions.
    bytes = min(bytes * 2, portions.upperBound)
    guard let chunk, found.records.next == offset else {
      return .missed(next: max(found.records.next, offset + 1))
    }
    return .ready(chunk)
  }

  /// Starts to load the records after the chunk while those in it are sent, unless they are in memory.
  package mutating func readAhead(before log: TopicLog) -> StoreRequest? {
    guard awaited == nil, ahead == nil, let chunk, chunk.endOffset < log.oldestOffset else { return nil }
    return request(chunk.endOffset)
  }

  private mutating func request(_ offset: UInt64) -> StoreRequest {
    awaited = offset
    return StoreRequest(storage: storage, offset: offset, bytes: bytes)
  }

  /// Whether the result of a request is still needed: the reader may have moved meanwhile.
  func awaits(_ request: StoreRequest) -> Bool { awaited == request.offset }

  /// Takes loaded records, if they are still needed. After a failure the request stays open, since the records may still exist.
  package mutating func take(_ records: StoredRecords, for request: StoreRequest) {
    guard awaits(request), !records.isFailure else { return }
    awaited = nil
    ahead = (request.offset, records)
  }

  /// Abandons a failed request, which isn't repeated.
  package mutating func abandon(_ request: StoreRequest) {
    if awaits(request) { awaited = nil }
  }

  /// Releases all records: the reader doesn't need them at the moment, or at all.
  package mutating func drop() {
    self = StoreReader(storage, portions: portions)
  }

  /// Whether other readers need the memory more than a reader without demand.
  var isCrowded: Bool {
    storage.service.loadedBytes.load(ordering: .relaxed) > storage.service.limits.catchUpMemory
  }
}

/// A reader from storage on a loop, which is notified when records were loaded.
package protocol StoreConsumer: AnyObject {
  var source: RecordSource { get set }

  /// The records that the source was waiting for were loaded.
  func storedRecordsArrived()
}

/// Performs the requests of one consumer's source, on its loop.
// @unchecked: belongs to the loop; a job on that loop passes the records that were read.
package final class StoreLoader: @unchecked Sendable {
  private static let retry = Duration.seconds(1)

  private let topic: String
  private let loop: any EventLoop
  /// It owns this object. Not weak: with a weak reference, the runtime would count every reference to the consumer on its slow path.
  package unowned var consumer: (any StoreConsumer)?

  /// Nil for a topic that is in memory only.
  package init?(_ topic: String, _ storage: StoreTopicState?, on loop: any EventLoop) {
    guard storage != nil else { return nil }
    self.topic = topic
    self.loop = loop
  }

  /// Performs a request, if there is one.
  package func load(_ request: StoreRequest?) {
    guard let request else { return }
    request.load(of: topic, on: loop) { [weak self] records in self?.arrived(records, for: request) }
  }

  private func arrived(_ records: StoredRecords, for request: StoreRequest) {
    guard let consumer, consumer.source.awaits(request) else { return }
    guard records.isFailure else {
      consumer.source.take(records, for: request)
      return consumer.storedRecordsArrived()
    }
    _ = loop.schedule(after: Self.retry) { [weak self] in
      if let self, let consumer = self.consumer, consumer.source.awaits(request) { load(request) }
    }
  }
}
