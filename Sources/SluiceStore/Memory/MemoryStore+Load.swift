import SluiceWire
import Synchronization

extension MemoryStore: LoadableStore {
  public func prepareTopic() throws(StoreError) -> TopicID {
    state.withLock { state in
      let id = state.nextTopic
      state.nextTopic = TopicID(rawValue: id.rawValue + 1)
      state.prepared[id] = Topic(row: StoredTopic(name: "", settings: .init(), epoch: 0))
      state.wasClosed = false
      return id
    }
  }

  public func load(
    _ batches: [LoadedBatch], _ states: [StoredState], into topic: TopicID
  ) throws(StoreError) {
    let isThere = state.withLock { state in
      guard var loaded = state.prepared[topic] else { return false }
      loaded.batches += batches.map { ($0.firstOffset, $0.value) }
      for state in states { loaded.states[state.kind, default: [:]][state.key] = state.value }
      state.prepared[topic] = loaded
      return true
    }
    guard isThere else { throw StoreError(.failed, "topic number \(topic.rawValue) wasn't prepared") }
  }

  public func adopt(_ topics: [LoadedTopic]) throws(StoreError) {
    let missing = state.withLock { state -> TopicID? in
      if let missing = topics.first(where: { state.prepared[$0.id] == nil }) { return missing.id }
      for loaded in topics {
        guard var topic = state.prepared.removeValue(forKey: loaded.id) else { continue }
        topic.row = loaded.row
        topic.extent = loaded.extent
        if let replaced = loaded.replaced { state.topics[replaced] = nil }
        state.topics[loaded.id] = topic
      }
      return nil
    }
    if let missing { throw StoreError(.failed, "topic number \(missing.rawValue) wasn't prepared") }
  }

  public func discard(_ topic: TopicID) throws(StoreError) {
    state.withLock { $0.prepared[topic] = nil }
  }
}
