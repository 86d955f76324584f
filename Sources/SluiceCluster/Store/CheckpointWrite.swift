import SluiceNATS
import SluiceStore

/// The messages of a checkpoint: the state of the changed topics except their batches, followed by a front message.
struct CheckpointWrite {
  /// The most messages of one atomic batch.
  private static let most = 500

  /// The messages that haven't been sent yet.
  private var messages: ArraySlice<NATSMessage>

  /// - Parameters:
  ///   - dirty: the topics that have changed since the last front; those that aren't in `topics` are deleted.
  ///   - topics: the state of the shard's topics.
  ///   - fence: the sequence of the fence under which they are sent.
  ///   - names: the names of the shard.
  ///   - most: the most bytes of a message's payload.
  init(
    _ dirty: Set<TopicID>, _ topics: ShardTopics, fence: UInt64, _ names: EngineNames, atMost most: Int
  ) {
    var messages: [NATSMessage] = []
    for id in dirty.sorted() {
      let state = topics[id].flatMap { $0.isStored ? $0 : nil }
      let payloads = TopicCheckpoint(id, state).payloads(fence: fence, atMost: most)
      for (part, payload) in payloads.enumerated() {
        messages.append(NATSMessage(subject: names.checkpoint(of: id, part: part), payload: payload))
      }
    }
    messages.append(
      NATSMessage(subject: names.front, payload: EngineFront(nextTopic: topics.next).message(fence: fence)))
    for index in messages.indices { messages[index].headers.rollUp(.subject) }
    self.messages = messages[...]
  }

  /// The next atomic batch, which expects the stream's last sequence. Nil after all messages were sent.
  mutating func next(behind last: UInt64) -> [NATSMessage]? {
    guard !messages.isEmpty else { return nil }
    var batch = Array(messages.prefix(Self.most))
    messages = messages.dropFirst(Self.most)
    batch[0].headers.expectLastSequence(last)
    return batch
  }
}
