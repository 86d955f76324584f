import SluiceIO
import SluiceStore

/// When a shard's next checkpoints are due, and of which topics.
///
/// They bound what opening the shard has to read: all changes behind the last front message.
struct CheckpointSchedule {
  /// Topics without a checkpoint that takes account of everything; also those that are deleted.
  private(set) var dirty: Set<TopicID>
  /// Bytes of changes behind the front.
  private(set) var changedBytes: Int
  /// The sequence of the last front message; 0 without one.
  private(set) var front: UInt64
  private let bytes: Int
  private let interval: Duration
  /// So many changed bytes make checkpoints due.
  private var dueBytes: Int
  /// When the next checkpoints may be written, however much has changed.
  private var earliest: MonotonicTime
  /// Whether space can be freed behind the next front only.
  private var isWanted = false

  /// - Parameters:
  ///   - dirty: topics that were changed behind the front.
  ///   - changedBytes: the bytes of these changes.
  ///   - front: the sequence of the last front message.
  ///   - bytes: changes of so many bytes make checkpoints due.
  ///   - interval: the time between checkpoints, at least.
  ///   - now: the time.
  init(
    dirty: Set<TopicID>, changedBytes: Int, front: UInt64, bytes: Int, interval: Duration, now: MonotonicTime
  ) {
    self.dirty = dirty
    self.changedBytes = changedBytes
    self.front = front
    self.bytes = bytes
    self.interval = interval
    dueBytes = bytes
    earliest = now
  }

  func isDue(at now: MonotonicTime) -> Bool { isWanted || changedBytes >= dueBytes && now >= earliest }

  /// Changes of so many bytes were sent.
  mutating func sent(_ bytes: Int) { changedBytes += bytes }

  /// A change of a topic is stored.
  mutating func changed(_ topic: TopicID) { dirty.insert(topic) }

  /// Space can be freed behind the next front only.
  mutating func want() { isWanted = true }

  /// The engine has no room: checkpoints would be refused, too, until as much has changed again.
  mutating func refused() {
    dueBytes = changedBytes + bytes
    isWanted = false
  }

  /// The checkpoints of all dirty topics are stored, and a front message at that sequence behind them.
  mutating func written(front: UInt64, at now: MonotonicTime) {
    self.front = front
    dirty = []
    changedBytes = 0
    dueBytes = bytes
    earliest = now + interval
    isWanted = false
  }
}
