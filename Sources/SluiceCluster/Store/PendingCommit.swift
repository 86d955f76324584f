import SluiceIO
import SluiceNATS
import SluiceStore

/// A commit that isn't settled.
struct PendingCommit {
  enum Messages {
    case ready([NATSMessage])
    /// The places of the topic's batches must first be read, up to the batch of that offset.
    case unknownFront(TopicID, offset: UInt64)
  }

  let number: UInt64
  let changes: [TopicChange]
  /// The topics' extents after it, without its truncations. Nil for a deletion.
  let extents: [StoredExtent?]
  /// The same with its truncations, as of the last time that it was sent.
  private(set) var sentExtents: [StoredExtent?] = []
  /// The sequence of its last message.
  var last: UInt64 = 0
  /// The sequence of the first message of each change.
  private(set) var firstSequences: [UInt64] = []
  var isStored = false
  /// See ``EngineFlaw/earlyAnswer``.
  var isAnswered = false
  /// When it was last sent.
  var sentAt = MonotonicTime(nanoseconds: 0)
  /// The engine's error, if it has refused the commit.
  var error: NATSError?

  init(_ number: UInt64, _ changes: [TopicChange], _ extents: [StoredExtent?]) {
    self.number = number
    self.changes = changes
    self.extents = extents
  }

  /// Its messages, as they would be sent next.
  ///
  /// - Parameters:
  ///   - predicted: the stream's last sequence when the earlier commits are stored.
  ///   - fence: the sequence of the fence under which they are sent.
  ///   - topics: the state of the shard's topics.
  ///   - names: the names of the shard.
  ///   - most: the most bytes of a message's payload.
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
