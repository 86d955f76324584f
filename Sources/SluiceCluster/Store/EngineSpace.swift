import SluiceStore

/// Decides which messages of a shard's stream can be freed, and in which order: one purge at a time, below the last front.
///
/// Purges aren't fenced: each names a fixed sequence, and no owner needs earlier messages of its subjects.
struct EngineSpace {
  struct Purge: Hashable {
    enum What {
      /// The batches that a topic has dropped.
      case batches
      /// All messages of a deleted topic.
      case everything
    }

    var topic: TopicID
    var what: What
    /// Messages with lower sequences are removed.
    var end: UInt64
    /// Whether the topic then has nothing else to free.
    fileprivate var isLast: Bool

    func subjects(_ names: EngineNames) -> [String] {
      switch what {
      case .batches: [names.changes(of: topic)]
      case .everything: [names.changes(of: topic), names.checkpoints(of: topic)]
      }
    }
  }

  /// Topics with batches that may be purged.
  private var shortened: Set<TopicID> = []
  /// Deleted topics that may still have messages.
  private var deleted: Set<TopicID>
  private var isPurging = false

  init(deleted: Set<TopicID>) {
    self.deleted = deleted
  }

  /// Whether messages may be freed after the next front.
  var isWaiting: Bool { !isPurging && !(shortened.isEmpty && deleted.isEmpty) }

  /// Notes that a topic's first batches were dropped.
  mutating func truncated(_ topic: TopicID) { shortened.insert(topic) }

  mutating func deleted(_ topic: TopicID) { deleted.insert(topic) }

  /// The next purge, which ends with ``finish(_:_:)`` or ``giveUp()``. Nil while another one is in progress.
  ///
  /// - Parameters:
  ///   - front: the sequence of the last front message; 0 without one. Later changes are read when the shard is opened.
  ///   - dirty: topics whose last changes are in no checkpoint.
  mutating func next(below front: UInt64, _ dirty: Set<TopicID>, _ topics: ShardTopics) -> Purge? {
    guard !isPurging, front > 0 else { return nil }
    if let topic = deleted.first(where: { !dirty.contains($0) }) {
      isPurging = true
      return Purge(topic: topic, what: .everything, end: front, isLast: true)
    }
    for id in shortened {
      guard let topic = topics[id] else {
        shortened.remove(id)
        continue
      }
      guard let sequence = topic.firstNeeded else { continue }
      guard sequence > topic.floor else {
        shortened.remove(id)
        continue
      }
      let end = min(sequence, front)
      guard end > topic.floor else { continue }
      isPurging = true
      return Purge(topic: id, what: .batches, end: end, isLast: end == sequence)
    }
    return nil
  }

  /// Completes a purge.
  mutating func finish(_ purge: Purge, _ topics: inout ShardTopics) {
    isPurging = false
    switch purge.what {
    case .everything: deleted.remove(purge.topic)
    case .batches:
      topics[purge.topic]?.floor = purge.end
      if purge.isLast { shortened.remove(purge.topic) }
    }
  }

  /// Gives up a failed purge, which is retried later.
  mutating func giveUp() { isPurging = false }
}
