import SluiceWire

/// What happens to a broker's storage that somebody should know of.
public enum StorageEvent: Hashable, Sendable {
  /// The store was opened: what is in it, and whether it was closed in order.
  case opened(topics: Int, bytes: UInt64, wasClosed: Bool)
  /// Nothing can be written; those who publish to durable topics wait.
  case failed(message: String, isFull: Bool)
  /// Publishers still wait, since so many milliseconds; told a second after it began, and every minute from then on.
  case waiting(publishers: Int, bytes: Int, isFull: Bool, milliseconds: UInt64)
  /// It can again.
  case recovered
  /// The store refuses a change of a topic for what is in it. The change was set aside; other topics aren't affected.
  case rejected(topic: String, message: String)
  /// A limit of a durable topic drops records; told once for each limit of a topic.
  case dropping(topic: String, limit: DroppedRecords.Limit)
  /// Records of a topic can't be read: those from the first offset on, before the other.
  case damaged(topic: String, from: UInt64, before: UInt64)
  /// What was there of a topic can't be read, other than its records.
  case lost(topic: String, message: String)
  /// All is on disk, and the store closed. With a message when it isn't.
  case closed(message: String?)
}
