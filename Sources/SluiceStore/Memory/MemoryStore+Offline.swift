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
    try state.withLock { state throws(StoreError) in
      guard var loaded = state.prepared[topic] else { throw .notPrepared(topic) }
      loaded.batches += batches.map { ($0.firstOffset, $0.value) }
      for state in states { loaded.states[state.kind, default: [:]][state.key] = state.value }
      state.prepared[topic] = loaded
    }
  }

  public func adopt(_ topics: [LoadedTopic]) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      for missing in topics where state.prepared[missing.id] == nil { throw .notPrepared(missing.id) }
      for loaded in topics {
        guard var topic = state.prepared.removeValue(forKey: loaded.id) else { continue }
        topic.row = loaded.row
        topic.extent = loaded.extent
        if let replaced = loaded.replaced { state.topics[replaced] = nil }
        state.topics[loaded.id] = topic
      }
    }
  }

  public func discard(_ topic: TopicID) throws(StoreError) {
    state.withLock { $0.prepared[topic] = nil }
  }
}

extension MemoryStore: RepairableStore {
  public func inspection() throws(StoreError) -> StoreInspection {
    state.withLock { state in
      let topics = state.topics.sorted { $0.key < $1.key }.map { id, topic in
        StoreInspection.Topic(
          id: id, row: topic.rowFault.map { .failure($0) } ?? .success(topic.row),
          extent: topic.isExtentLost ? nil : topic.extent)
      }
      let bytes = state.topics.values.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.value.count } }
      return StoreInspection(
        topics: topics, strays: state.strays.keys.sorted(), nextTopic: state.nextTopic,
        wasClosed: state.wasClosed, size: StoreSize(files: UInt64(bytes), reusable: 0))
    }
  }

  public func rawBatches(
    of topic: TopicID, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) {
    let batches = state.withLock { state in
      (state.topics[topic] ?? state.strays[topic])?.batches ?? []
    }
    for batch in batches {
      guard unsafe batch.value.withUnsafeBytes({ unsafe body(batch.offset, $0) }) else { return }
    }
  }

  public func rawStates(of topic: TopicID, _ body: (RawState) -> Bool) throws(StoreError) {
    let raw = state.withLock { state -> [RawState] in
      guard let topic = state.topics[topic] else { return [] }
      let sound = topic.states.flatMap { kind, states in
        states.map { RawState(key: [kind.rawValue] + $0, value: $1) }
      }
      let all = sound + topic.strayStates.map { RawState(key: $0, value: $1) }
      return all.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }
    for state in raw where !body(state) { return }
  }

  public func mend(_ repair: TopicRepair) throws(StoreError) {
    state.withLock { state in
      state.nextTopic = max(state.nextTopic, TopicID(rawValue: repair.topic.rawValue + 1))
      state.wasClosed = false
      guard !repair.isRemoval else {
        state.strays[repair.topic] = nil
        state.topics[repair.topic] = nil
        return
      }
      guard var topic = state.topics[repair.topic] else { return }
      let removed = Set(repair.batches)
      topic.batches.removeAll { removed.contains($0.offset) }
      for key in repair.states {
        topic.strayStates[key] = nil
        if let state = RawState(key: key, value: []).state { topic.states[state.kind]?[state.key] = nil }
      }
      if let extent = repair.extent {
        topic.extent = extent
        topic.isExtentLost = false
      }
      if let row = repair.row {
        topic.row = row
        topic.rowFault = nil
      }
      state.topics[repair.topic] = topic
    }
  }
}

// MARK: Damage, for tests

extension MemoryStore {
  package enum Damage {
    case row(StoreError)
    case name(String)
    case extentLost
    case extent((inout StoredExtent) -> Void)
    /// Puts a state under a key that none has.
    case state(key: [UInt8])
    /// Takes a batch away, and lets the rest be as it was.
    case batchLost(UInt64)
    /// Takes the row away.
    case strayed
    case nextTopic
  }

  /// Damages a topic.
  package func damage(_ id: TopicID, _ damage: Damage) {
    state.withLock { state in
      guard var topic = state.topics[id] else { return }
      switch damage {
      case .row(let fault): topic.rowFault = fault
      case .name(let name): topic.row.name = name
      case .extentLost: topic.isExtentLost = true
      case .extent(let change): change(&topic.extent)
      case .state(let key): topic.strayStates[key] = [1]
      case .batchLost(let offset): topic.batches.removeAll { $0.offset == offset }
      case .strayed:
        state.strays[id] = topic
        state.topics[id] = nil
        return
      case .nextTopic: state.nextTopic = id
      }
      state.topics[id] = topic
    }
  }
}
