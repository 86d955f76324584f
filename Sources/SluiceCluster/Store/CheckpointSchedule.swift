import SluiceIO
import SluiceStore

/// Decides when a shard's next checkpoints are due, and of which topics.
///
/// Checkpoints limit what must be read to open the shard: all changes behind the last front message.
struct CheckpointSchedule {
  /// Topics with changes that no checkpoint contains; also deleted topics.
  private(set) var dirty: Set<TopicID>
  /// Bytes of changes behind the front.
  private(set) var changedBytes: Int
  /// The sequence of the last front message; 0 without one.
  private(set) var front: UInt64
  private let bytes: Int
  private let interval: Duration
  /// The number of changed bytes at which checkpoints are due.
  private var dueBytes: Int
  /// The earliest time of the next checkpoints, regardless of changes.
  private var earliest: MonotonicTime
  /// Whether space can be freed only after the next front.
  private var isWanted = false

  /// - Parameters:
  ///   - dirty: topics that were changed behind the front.
  ///   - changedBytes: the bytes of these changes.
  ///   - front: the sequence of the last front message.
  ///   - bytes: the number of changed bytes at which checkpoints are due.
  ///   - interval: the least time between checkpoints.
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

  /// Counts changes that were sent.
  mutating func sent(_ bytes: Int) { changedBytes += bytes }

  /// Notes that a change of a topic is stored.
  mutating func changed(_ topic: TopicID) { dirty.insert(topic) }

  /// Notes that space can be freed only after the next front.
  mutating func want() { isWanted = true }

  /// Puts checkpoints off until as much has changed again: the engine has no space, so it would refuse them, too.
  mutating func refused() {
    dueBytes = changedBytes + bytes
    isWanted = false
  }

  /// Notes that the checkpoints of all dirty topics are stored, followed by a front message at that sequence.
  mutating func written(front: UInt64, at now: MonotonicTime) {
    self.front = front
    dirty = []
    changedBytes = 0
    dueBytes = bytes
    earliest = now + interval
    isWanted = false
  }
}
