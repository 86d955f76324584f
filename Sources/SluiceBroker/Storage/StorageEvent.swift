/// What happens to a broker's storage that somebody should know of.
public enum StorageEvent: Hashable, Sendable {
  /// The store was opened: what is in it, and whether it was closed in order.
  case opened(topics: Int, bytes: UInt64, wasClosed: Bool)
  /// Nothing can be written; those who publish to durable topics wait.
  case failed(message: String, isFull: Bool)
  /// It can again.
  case recovered
  /// The store refuses a change of a topic for what is in it. The change was set aside; other topics aren't affected.
  case rejected(topic: String, message: String)
  /// Records of a topic can't be read: those from the first offset on, before the other.
  case damaged(topic: String, from: UInt64, before: UInt64)
  /// What was there of a topic can't be read, other than its records.
  case lost(topic: String, message: String)
  /// All is on disk, and the store closed. With a message when it isn't.
  case closed(message: String?)
}
