import SluiceStore

extension LMDBStore: LoadableStore {
  /// Until a topic is adopted its number is among those of deleted ones: ``reclaim()`` throws away what it has.
  public func prepareTopic() throws(StoreError) -> TopicID {
    let topic = try write(.takes) { transaction, tables throws(StoreError) in
      if !isMarkedOpen { try transaction.put(number: UInt8(0), tables.meta, .closed) }
      let next: UInt64 = try transaction.number(tables.meta, .nextTopic) ?? 1
      guard next < .max else {
        throw StoreError(.damaged, "\(transaction.path) is damaged: it has no number for another topic")
      }
      try transaction.put(number: next + 1, tables.meta, .nextTopic)
      let topic = TopicID(rawValue: next)
      try transaction.put(tables.garbage, TopicKey(topic), [])
      return topic
    }
    isMarkedOpen = true
    return topic
  }

  public func load(
    _ batches: [LoadedBatch], _ states: [StoredState], into topic: TopicID
  ) throws(StoreError) {
    try write(.takes) { transaction, tables throws(StoreError) in
      try Self.checkPrepared(topic, transaction, tables)
      for batch in batches {
        try transaction.put(tables.batches, BatchKey(topic, batch.firstOffset), batch.value)
      }
      for state in states {
        try transaction.put(tables.states, StateKey(topic, state.kind, state.key), state.value)
      }
    }
  }

  public func adopt(_ topics: [LoadedTopic]) throws(StoreError) {
    try write(.takes) { transaction, tables throws(StoreError) in
      for topic in topics {
        try Self.checkPrepared(topic.id, transaction, tables)
        try transaction.delete(tables.garbage, TopicKey(topic.id))
        let entry = TopicEntry(extent: topic.extent, row: topic.row.encoded())
        unsafe entry.write(
          to: try transaction.reserve(tables.topics, TopicKey(topic.id), count: entry.count), for: topic.id)
        if let replaced = topic.replaced { try tables.delete(replaced, in: transaction) }
      }
    }
    while topics.contains(where: { $0.replaced != nil }), try reclaim() {}
  }

  public func discard(_ topic: TopicID) throws(StoreError) {
    while try reclaim() {}
  }

  private static func checkPrepared(
    _ topic: TopicID, _ transaction: LMDBTransaction, _ tables: LMDBTables
  ) throws(StoreError) {
    if try unsafe transaction.get(tables.garbage, TopicKey(topic)) == nil { throw .notPrepared(topic) }
  }
}
