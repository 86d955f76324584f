import SluiceIO
import SluiceNATS
import SluiceStore

/// A commit that isn't settled.
struct PendingCommit {
  enum Messages {
    case ready([NATSMessage])
    /// The topic's batches have to be known first up to the one that holds the record with that offset.
    case unknownFront(TopicID, offset: UInt64)
  }

  let number: UInt64
  let changes: [TopicChange]
  /// The topics' extents after it, without what it drops. Nil for a deletion.
  let extents: [StoredExtent?]
  /// The same with what it drops, as of the last time that it was sent.
  private(set) var sentExtents: [StoredExtent?] = []
  /// The sequence of its last message.
  var last: UInt64 = 0
  /// The sequence of the first message of each change.
  private(set) var firstSequences: [UInt64] = []
  var isStored = false
  /// See ``EngineFlaw/earlyAnswer``.
  var isAnswered = false
  /// When it was sent last.
  var sentAt = MonotonicTime(nanoseconds: 0)
  /// What the engine has answered, when it has refused it.
  var error: NATSError?

  init(_ number: UInt64, _ changes: [TopicChange], _ extents: [StoredExtent?]) {
    self.number = number
    self.changes = changes
    self.extents = extents
  }

  /// Its messages, as they would be sent next.
  ///
  /// - Parameters:
  ///   - predicted: the stream's last sequence when the commits before it are stored.
  ///   - fence: the sequence of the fence under which they are sent.
  ///   - topics: what is known of the shard's topics.
  ///   - names: of the shard.
  ///   - most: the bytes of a message's payload at most.
  mutating func messages(
    behind predicted: UInt64, under fence: UInt64, _ topics: ShardTopics, _ names: EngineNames,
    atMost most: Int
  ) -> Messages {
    var beginnings: [EngineChange.Beginning?] = []
    var extents = extents
    for (index, change) in changes.enumerated() {
      guard var extent = extents[index], let topic = topics[change.topic] else {
        beginnings.append(nil)
        continue
      }
      extent.firstOffset = max(extent.firstOffset, topic.sentBeginning.firstOffset)
      extent.bytesBefore = max(extent.bytesBefore, topic.sentBeginning.bytesBefore)
      var beginning: EngineChange.Beginning?
      if let offset = change.truncateBefore {
        switch topic.index.cut(before: offset, extent) {
        case .at(let found): beginning = found.firstOffset > extent.firstOffset ? found : nil
        case .unknown: return .unknownFront(change.topic, offset: offset)
        }
      }
      if let beginning {
        extent.firstOffset = beginning.firstOffset
        extent.bytesBefore = beginning.bytesBefore
      }
      extents[index] = extent
      beginnings.append(beginning)
    }
    sentExtents = extents
    var messages: [NATSMessage] = []
    firstSequences = []
    for (index, change) in changes.enumerated() {
      firstSequences.append(predicted + UInt64(messages.count) + 1)
      if change.isNothing { continue }
      messages += EngineChange.messages(
        of: change, beginnings[index], to: names.changes(of: change.topic), fence: fence, commit: number,
        atMost: most)
    }
    return .ready(messages)
  }
}

extension TopicChange {
  /// Whether there is nothing to be stored.
  var isNothing: Bool {
    !isDeletion && row == nil && batches.isEmpty && states.isEmpty && truncateBefore == nil
  }
}
