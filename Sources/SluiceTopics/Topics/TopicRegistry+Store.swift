import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceWire
import Synchronization

// Topics that outlive the process.
extension TopicRegistry {
  /// - Throws: why there can't be such a topic, when it is to be durable.
  func checkStorage(_ settings: TopicSettings, of name: String) throws(WireError) {
    guard settings.storage == .durable else { return }
    guard stores.areAvailable else {
      throw WireError(
        .unsupported,
        "the broker has no directory for durable topics; start it with --data DIR, or create \(name) with storage memory"
      )
    }
    guard settings.scope == .forever else {
      throw WireError(
        .invalidSetting,
        "a durable topic can't start over whenever its subscribers leave; create \(name) with scope forever, or with storage memory"
      )
    }
    guard settings.compact != true else {
      throw WireError(
        .unsupported,
        "topics that keep the newest record of each key are in memory only in this version; create \(name) without compact, or with storage memory"
      )
    }
    if find(name) == nil, let fault = stores.service(for: name)?.refusal {
      throw WireError(fault)
    }
  }

  func newDurable(
    _ name: String, _ settings: TopicSettings, _ storage: StoreService, _ kept: KeptAccount.Charge?
  ) -> Topic {
    let stored = StoreTopicState(
      id: storage.newTopic(), service: storage, settings: settings, extent: StoredExtent())
    let topic = durable(name, settings, stored, kept, epoch: epochs.next(), lineage: [])
    topic.state.withLock { $0.tail?.noteRow() }
    return topic
  }

  private func durable(
    _ name: String, _ settings: TopicSettings, _ stored: StoreTopicState,
    _ kept: KeptAccount.Charge? = nil, epoch: UInt64, lineage: [StoredTopic.Ancestor]
  ) -> Topic {
    Topic(
      name: name, settings: settings, limits: limits, memory: memory, kept: kept, storage: stored
    ) { [pool] settings in
      TopicEpoch(
        number: epoch,
        log: TopicLog(
          retention: settings.tailRetention, pool: pool, firstOffset: stored.birthExtent.head),
        storage: stored, lineage: lineage)
    }
  }

  /// Restores the topics of a shard. Before clients can use them; blocks as reading the states does.
  ///
  /// - Parameters:
  ///   - shard: what was opened for the service.
  ///   - storage: the service of the shard's store.
  ///   - now: the present time.
  ///   - announce: called when the store begins or ceases to take records.
  /// - Throws: when the store can't be read.
  package func restore(
    _ shard: OpenedShard, _ storage: StoreService, now: MonotonicTime,
    announce: @escaping @Sendable () -> Void
  ) throws(StoreError) -> StoreEvent {
    let contents = shard.contents
    var bytes: UInt64 = 0
    var topics: [Topic] = []
    var renewed: [Topic] = []
    for stored in contents.topics {
      bytes += stored.extent.bytes
      let topic = try restore(stored, shard, storage, now: now)
      // A topic that was deleted and made anew may be there twice, if the crash came in between.
      let former = state.withLock { state in
        let former = state.topics[topic.name]
        state.add(topic)
        return former
      }
      former?.delete()
      topics.append(topic)
      if topic.epoch.number != stored.row.epoch { renewed.append(topic) }
    }
    let isRenewed = renew(renewed, storage.store)
    storage.start(nextTopic: contents.nextTopic, notify: announce)
    storage.adopt(topics)
    if !isRenewed {
      // As soon as the store can be written, then.
      for topic in renewed {
        topic.state.withLock { $0.tail?.noteRow() }
        topic.commit(within: .zero)
      }
    }
    storage.kick()
    return .opened(topics: contents.topics.count, bytes: bytes, wasClosed: contents.wasClosed)
  }

  /// A store begins or ceases to take records: the producers of its topics have to learn of it.
  package func storeChanged(_ service: StoreService) {
    let topics = all.filter { $0.storage?.service === service }.sorted { $0.name < $1.name }
    for topic in topics { topic.notify(topic.loopStates) }
  }

  /// Persists new epochs before any client can observe them, so that they are known after another crash. Returns whether they are stored.
  ///
  /// A store that doesn't block has them committed ahead of everything else: its owner serves the topics after ``StoreService/flush(_:)``.
  private func renew(_ topics: [Topic], _ store: any ShardStore) -> Bool {
    let changes = topics.compactMap { $0.rowChange }
    guard !changes.isEmpty else { return true }
    guard store.isBlocking, case .settled(nil) = store.commit(changes, as: 0) else { return false }
    return true
  }

  private func restore(
    _ stored: StoreContents.Topic, _ shard: OpenedShard, _ storage: StoreService, now: MonotonicTime
  ) throws(StoreError) -> Topic {
    // Settings that came later than the row have their defaults.
    let settings = stored.row.settings.completed(by: TopicSettings.standard(in: .durable))
    let topicStorage = StoreTopicState(
      id: stored.id, service: storage, settings: settings, extent: stored.extent,
      trimmedTo: stored.row.trimmedTo, setbacks: stored.row.setbacks)
    var row = stored.row
    // Clients may have had records that were not on disk yet: these offsets mean other records from now on.
    let isNewEpoch = !shard.contents.wasClosed && !topicStorage.isSynchronous && row.ending == nil
    if isNewEpoch { row.begin(epoch: epochs.next(), continuingUpTo: stored.extent.head) }
    let topic = durable(row.name, settings, topicStorage, epoch: row.epoch, lineage: row.lineage)
    if let ending = stored.row.ending { topic.epoch.end(ending) }
    let producers = try shard.states(stored.id, .producer)
    let cursors = try shard.states(stored.id, .cursor)
    let groups = try shard.states(stored.id, .group)
    let lost = topic.state.withLock { state in
      state.endedBy = stored.row.endedBy
      state.loadedHead = isNewEpoch ? nil : stored.extent.head
      state.isStated = stored.row.isStated
      // Returning subscribers may need everything; a lossless topic drops nothing before the first of them is back.
      state.lastSubscriberOffset =
        settings.flow == .lossless
        ? topicStorage.firstKept(before: stored.extent.head) : stored.extent.head
      var lost: [StoreError] = []
      for producer in producers { restore(producer, into: &state, now, &lost) }
      for cursor in cursors { restore(cursor, into: &state, now, &lost) }
      for group in groups { restore(group, of: topic, into: &state, now, &lost) }
      return lost
    }
    topic.restored(now: now)
    for error in lost { storage.lost(topic.name, error.message) }
    return topic
  }

  private func restore(
    _ stored: StoredState, into state: inout Topic.State, _ now: MonotonicTime, _ lost: inout [StoreError]
  ) {
    do throws(StoreError) {
      switch stored.kind {
      case .producer:
        let number = try StoredValue.number(stored.key)
        state.producers.restore(number, next: try StoredProducer(decoding: stored.value).next, now: now)
      case .cursor:
        let name = try StoredValue.name(stored.key)
        state.cursors.restore(name, try StoredCursor(decoding: stored.value).found, now: now)
      case .group: break
      }
    } catch {
      lost.append(error)
    }
  }

  private func restore(
    _ stored: StoredState, of topic: Topic, into state: inout Topic.State,
    _ now: MonotonicTime, _ lost: inout [StoreError]
  ) {
    do throws(StoreError) {
      let group = try StoredGroup(decoding: stored.value)
      let name = try StoredValue.name(stored.key)
      state.groups[name] = Group(
        name: name, restoring: group, topic: topic, epoch: state.epoch, limit: limits.groupRecords,
        now: now)
    } catch {
      lost.append(error)
    }
  }
}
