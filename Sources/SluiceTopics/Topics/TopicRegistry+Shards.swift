import SluiceIO
import SluiceStore
import SluiceWire
import Synchronization

// Shards that move to this node of a cluster, and leave it.
extension TopicRegistry {
  /// Whether this node may have a topic of that name. With the lock of `state` held, so that no topic is created in a shard that leaves.
  func serves(_ name: String, _ state: TopicDirectory) -> Bool {
    guard let routes else { return true }
    return routes.shard(of: name).map { state.shards.contains($0) } ?? false
  }

  /// Begins to serve a shard. Its durable topics have been restored; streams may be opened when this returns.
  ///
  /// - Returns: these topics.
  package func open(_ shard: ShardID) -> [Topic] {
    let (topics, watchers): ([Topic], PatternIndex<any TopicWatcher>) = state.withLock { state in
      state.open(shard)
      return (state.topics(of: shard), state.watchers)
    }
    for topic in topics {
      for watcher in watchers.values(selecting: topic.name) { watcher.topicMade(topic, topic.epoch) }
    }
    return topics
  }

  /// The shards that this node serves.
  package var servedShards: ServedShards { state.withLock { $0.shards } }

  /// Begins to hand over a shard: its topics accept no more records, and no new ones are created. Their streams continue, because earlier records are
  /// acknowledged when they are stored.
  ///
  /// - Returns: the topics, for ``Topic/leave()``.
  package func beginLeaving(_ shard: ShardID) -> [Topic] {
    let leaving: [Topic] = state.withLock { state in
      state.close(shard)
      let leaving = state.topics(of: shard)
      for topic in leaving { state.remove(topic) }
      return leaving
    }
    for topic in leaving { topic.beginLeaving() }
    return leaving
  }

  /// Makes topics check again whether this node may acknowledge and deliver records that aren't stored. From any thread.
  package func leaseResumed() {
    for topic in all {
      topic.notify(topic.loopStates)
      for loopState in topic.loopStates { loopState.wakeProducers() }
    }
  }
}
