import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// Records of a durable topic that are no longer in memory, for one consumer: read on another thread, a chunk at a time, and one ahead.
///
/// A chunk is a segment like those of the log, of the same items, so that what reads and sends the one does the other.
// @unchecked: belongs to the consumer's loop; what is read comes by a job on that loop.
final class StoreReader: @unchecked Sendable {
  /// What there is at an offset.
  enum Step {
    /// The chunk has it.
    case ready(Segment)
    /// It is being read; the consumer is woken.
    case loading
    /// It isn't there any more, and the next that is has that offset.
    case missed(next: UInt64)
  }

  /// Small at first: most who come late want little, and wait for it.
  private static let firstBytes = 64 << 10
  private static let mostBytes = 1 << 20
  private static let retry = Duration.seconds(1)

  private let topic: String
  private let storage: StoreTopicState
  private let loop: any EventLoop
  /// Woken on the loop when there may be more. It owns this: not weak, for a weak reference would have the runtime count every reference to
  /// the consumer by its slow path.
  unowned var consumer: Consumer?
  private var bytes = StoreReader.firstBytes

  /// What is being read from, or was read ahead.
  private(set) var chunk: Segment?
  private var ahead: (from: UInt64, records: StoredRecords)?
  private var loading: UInt64?

  /// Nil for a topic that is in memory only.
  init?(_ topic: Topic, on loop: any EventLoop) {
    guard let storage = topic.storage else { return nil }
    self.topic = topic.name
    self.storage = storage
    self.loop = loop
  }

  deinit {
    release(chunk)
    release(ahead?.records.segment)
  }

  /// Looks for the record with that offset, and has it read if need be.
  func seek(_ offset: UInt64) -> Step {
    if let chunk, chunk.baseOffset <= offset, offset < chunk.endOffset { return .ready(chunk) }
    guard let found = ahead, found.from == offset else {
      if loading != offset { load(offset) }
      return .loading
    }
    ahead = nil
    release(chunk)
    chunk = found.records.segment
    // What is read on after this is worth larger portions.
    bytes = min(bytes * 2, Self.mostBytes)
    if found.records.next > offset { return .missed(next: found.records.next) }
    return chunk.map { .ready($0) } ?? .loading
  }

  /// Reads the records behind the chunk while those in it are being sent, unless they are in memory.
  ///
  /// - Parameter memory: the oldest offset in memory.
  func readAhead(before memory: UInt64) {
    guard let chunk, loading == nil, ahead == nil, chunk.endOffset < memory else { return }
    load(chunk.endOffset)
  }

  /// The consumer doesn't need the chunk at the moment, or at all.
  func drop() {
    release(chunk)
    release(ahead?.records.segment)
    chunk = nil
    ahead = nil
    loading = nil
    bytes = Self.firstBytes
  }

  /// Whether others need the memory more than somebody who asks for nothing.
  var isCrowded: Bool {
    storage.service.loadedBytes.load(ordering: .relaxed) > storage.service.limits.catchUpMemory
  }

  private func release(_ segment: Segment?) {
    if let segment { storage.service.loadedBytes.subtract(segment.bytes, ordering: .relaxed) }
  }

  private func load(_ offset: UInt64) {
    loading = offset
    let bytes = bytes
    storage.service.load(storage, topic, from: offset, bytes: bytes, on: loop) {
      [weak self, storage] records in
      if let self { return loaded(offset, records) }
      if let segment = records.segment {
        storage.service.loadedBytes.subtract(segment.bytes, ordering: .relaxed)
      }
    }
  }

  private func loaded(_ offset: UInt64, _ records: StoredRecords) {
    // The consumer may have gone elsewhere meanwhile.
    guard loading == offset else { return release(records.segment) }
    guard !records.isFailure else {
      // It isn't known that they are gone.
      _ = loop.schedule(after: Self.retry) { [weak self] in
        if let self, loading == offset { load(offset) }
      }
      return
    }
    loading = nil
    release(ahead?.records.segment)
    ahead = (offset, records)
    if let consumer, case .none = consumer.place { consumer.woken() }
  }
}
