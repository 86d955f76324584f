import SluiceIO
import SluiceLog
import Synchronization

/// A part of a topic's records that is to be read from storage.
package struct StoreRequest: Sendable {
  package let storage: StoreTopicState
  package let offset: UInt64
  /// About how many bytes.
  package let bytes: Int

  /// Reads on another thread, and hands the records over on `loop`.
  package func load(
    of topic: String, on loop: any EventLoop, _ completion: @escaping @Sendable (StoredRecords) -> Void
  ) {
    storage.service.load(storage, topic, from: offset, bytes: bytes, on: loop, completion)
  }
}

/// Records of a durable topic that are no longer in memory, for one reader: a chunk at a time, and one ahead.
///
/// A value without I/O: it says what is to be loaded, and is given what was. A chunk is a segment like those of the log, of the same items, so that what
/// reads and sends the one does the other.
package struct StoreReader: Sendable {
  /// What there is at an offset.
  package enum Place {
    /// The chunk has it.
    case ready(Segment)
    /// It has to be loaded; nil when it is being loaded.
    case loading(StoreRequest?)
    /// It isn't there any more, and the next that is has that offset.
    case missed(next: UInt64)
  }

  /// Bytes of the first chunk, and the most of any. Small at first: most readers that come late want little, and wait for it.
  static let portions = 64 << 10...1 << 20

  private let storage: StoreTopicState
  private let portions: ClosedRange<Int>
  private var bytes: Int
  /// What is being read from.
  private var loaded: LoadedSegment?
  /// What was loaded for an offset, and hasn't been read from.
  private var ahead: (offset: UInt64, records: StoredRecords)?
  /// The offset from which on records are being loaded.
  private var awaited: UInt64?

  init(_ storage: StoreTopicState, portions: ClosedRange<Int>) {
    self.storage = storage
    self.portions = portions
    bytes = portions.lowerBound
  }

  /// What is being read from.
  package var chunk: Segment? { loaded?.segment }

  /// Records before this offset are passed by, also those that are loaded.
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
    // What is read on after this is worth larger portions.
    bytes = min(bytes * 2, portions.upperBound)
    guard let chunk, found.records.next == offset else {
      return .missed(next: max(found.records.next, offset + 1))
    }
    return .ready(chunk)
  }

  /// Has the records behind the chunk loaded while those in it are being sent, unless they are in memory.
  package mutating func readAhead(before log: TopicLog) -> StoreRequest? {
    guard awaited == nil, ahead == nil, let chunk, chunk.endOffset < log.oldestOffset else { return nil }
    return request(chunk.endOffset)
  }

  private mutating func request(_ offset: UInt64) -> StoreRequest {
    awaited = offset
    return StoreRequest(storage: storage, offset: offset, bytes: bytes)
  }

  /// Whether the result of a request is of use: the reader may have gone elsewhere meanwhile.
  func awaits(_ request: StoreRequest) -> Bool { awaited == request.offset }

  /// Takes what was loaded, if it is of use. After a failure the request stays open, since it isn't known that the records are gone.
  package mutating func take(_ records: StoredRecords, for request: StoreRequest) {
    guard awaits(request), !records.isFailure else { return }
    awaited = nil
    ahead = (request.offset, records)
  }

  /// A request has failed, and isn't repeated.
  package mutating func abandon(_ request: StoreRequest) {
    if awaits(request) { awaited = nil }
  }

  /// Lets go of everything: the reader doesn't need it at the moment, or at all.
  package mutating func drop() {
    self = StoreReader(storage, portions: portions)
  }

  /// Whether other readers need the memory more than one that asks for nothing.
  var isCrowded: Bool {
    storage.service.loadedBytes.load(ordering: .relaxed) > storage.service.limits.catchUpMemory
  }
}

/// What reads from storage on a loop, and is told when there is more.
package protocol StoreConsumer: AnyObject {
  var source: RecordSource { get set }

  /// The records that the source was waiting for have come.
  func storedRecordsArrived()
}

/// Carries out the requests of one consumer's source, on its loop.
// @unchecked: belongs to the loop; what was read comes by a job on that loop.
package final class StoreLoader: @unchecked Sendable {
  private static let retry = Duration.seconds(1)

  private let topic: String
  private let loop: any EventLoop
  /// It owns this. Not weak: a weak reference would have the runtime count every reference to the consumer by its slow path.
  package unowned var consumer: (any StoreConsumer)?

  /// Nil for a topic that is in memory only.
  package init?(_ topic: String, _ storage: StoreTopicState?, on loop: any EventLoop) {
    guard storage != nil else { return nil }
    self.topic = topic
    self.loop = loop
  }

  /// Has records loaded.
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
