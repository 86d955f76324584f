/// The limits of a broker's topics.
package struct TopicLimits: Sendable {
  /// The most topics at a time, and the most that one connection has created.
  package var topics = Int.max
  package var topicsPerConnection = Int.max
  /// The most subscriptions to patterns at a time.
  package var patterns = Int.max
  /// How many records a producer may send ahead of its grant.
  package var producerWindow: UInt64 = 65_536
  /// The most producers that a topic remembers, and how long it remembers detached ones.
  package var producers = 10_000
  package var producerMemory: Duration = .seconds(86_400)
  /// The most durable cursors and groups of a topic together, and how long it remembers unused ones.
  package var cursors = 10_000
  package var cursorMemory: Duration = .seconds(7 * 86_400)
  /// The most outstanding records of a group with explicit acknowledgement.
  package var groupRecords = 65_536
  /// The longest record, in bytes of its body.
  package var record = 1 << 20
  /// The time without attached streams after which a topic with `TopicSettings.autoDelete` is deleted.
  package var autoDeleteTime: Duration = .seconds(10)
  /// The most bytes that may wait for the disk, of one topic and of all.
  package var topicBacklog = 16 << 20
  package var storageBacklog = 256 << 20
  /// The most bytes of stored records in memory for subscribers that replay.
  package var catchUpMemory = 256 << 20

  package init() {}
}
