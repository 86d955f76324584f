import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceWire
import Synchronization

/// Detects whether a call that may complete asynchronously has completed when it returns.
private final class RestorationStep: Sendable {
  private enum State {
    case begun
    case completed(StoreError?)
    case left
  }

  private let state = Mutex(State.begun)

  /// Records the result of the call. Returns whether its caller no longer waits for it.
  func isLate(_ error: StoreError?) -> Bool {
    state.withLock { state in
      if case .left = state { return true }
      state = .completed(error)
      return false
    }
  }

  /// The result of the call; nil if it will complete later.
  var outcome: Result<Void, StoreError>? {
    state.withLock { state in
      guard case .completed(let error) = state else {
        state = .left
        return nil
      }
      return error.map { .failure($0) } ?? .success(())
    }
  }
}

// Topics that outlive the process.
extension TopicRegistry {
  /// - Throws: the reason why a topic that is to be durable can't be.
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
          retention: stored.newest == nil ? settings.tailRetention : .none, pool: pool,
          firstOffset: stored.birthExtent.head),
        newest: stored.newest, storage: stored, lineage: lineage)
    }
  }

  /// Restores the topics of a shard before clients can use them. Blocks as long as reading from the store does.
  ///
  /// - Parameters:
  ///   - shard: the shard opened for the service.
  ///   - storage: the service of the shard's store.
  ///   - now: the present time.
  ///   - wallClock: the same moment in milliseconds since 1970; records that have expired by then are no longer served.
  ///   - announce: called when the store begins or ceases to accept records.
  ///   - done: called once, before this returns if the store blocks; with the restored topics, or the reason why the store can't be read.
  package func restore(
    _ shard: OpenedShard, _ storage: StoreService, now: MonotonicTime, wallClock: Int64,
    announce: @escaping @Sendable () -> Void,
    _ done: @escaping @Sendable (Result<StoreEvent, StoreError>) -> Void
  ) {
    do throws(StoreError) {
      let restored = try restoreTopics(shard, storage, now: now, wallClock: wallClock)
      let compact = restored.topics.filter { $0.storage?.newest != nil }
      restoreNewest(of: compact[...], shard, wallClock: wallClock) { [self] error in
        if let error { return done(.failure(error)) }
        FloorSearch(restored.floorless, in: storage.store, wallClock: wallClock) { [self] error in
          if let error { return done(.failure(error)) }
          begin(restored, storage, nextTopic: shard.contents.nextTopic, announce: announce)
          done(
            .success(
              .opened(
                topics: restored.topics.count, bytes: restored.bytes, wasClosed: shard.contents.wasClosed)))
        }.run()
      }
    } catch {
      done(.failure(error))
    }
  }

  private struct Restored: Sendable {
    var topics: [Topic] = []
    /// The topics in a new epoch.
    var renewed: [Topic] = []
    /// The topics whose floor by age must be looked up in the store.
    var floorless: [StoreTopicState] = []
    /// Bytes of records.
    var bytes: UInt64 = 0
  }

  private func restoreTopics(
    _ shard: OpenedShard, _ storage: StoreService, now: MonotonicTime, wallClock: Int64
  ) throws(StoreError) -> Restored {
    var restored = Restored()
    for stored in shard.contents.topics {
      restored.bytes += stored.extent.bytes
      let (topic, hasFloor) = try restore(stored, shard, storage, now: now, wallClock: wallClock)
      if !hasFloor, let state = topic.storage { restored.floorless.append(state) }
      // A topic that was deleted and recreated may exist twice, if the broker crashed in between.
      let former = state.withLock { state in
        let former = state.topics[topic.name]
        state.add(topic)
        return former
      }
      former?.delete()
      restored.topics.append(topic)
      if topic.epoch.number != stored.row.epoch { restored.renewed.append(topic) }
    }
    return restored
  }

  /// Reads the newest records of compact topics, one topic after another.
  private func restoreNewest(
    of topics: ArraySlice<Topic>, _ shard: OpenedShard, wallClock: Int64,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    var rest = topics
    while let topic = rest.popFirst(), let storage = topic.storage {
      let step = RestorationStep()
      let following = rest
      do throws(StoreError) {
        let states = try shard.states(storage.id, .newest)
        storage.restoreNewest(topic.name, states, wallClock: wallClock) { [self] error in
          guard step.isLate(error) else { return }
          if let error {
            done(error)
          } else {
            restoreNewest(of: following, shard, wallClock: wallClock, done)
          }
        }
      } catch {
        return done(error)
      }
      // A store that blocks has already called back. The loop then continues here, so that thousands of topics don't deepen the stack.
      guard let outcome = step.outcome else { return }
      if case .failure(let error) = outcome { return done(error) }
    }
    done(nil)
  }

  /// Starts the service that stores the changes of the restored topics.
  private func begin(
    _ restored: Restored, _ storage: StoreService, nextTopic: TopicID,
    announce: @escaping @Sendable () -> Void
  ) {
    let isRenewed = renew(restored.renewed, storage.store)
    storage.start(nextTopic: nextTopic, notify: announce)
    storage.adopt(restored.topics)
    if !isRenewed {
      // Stored as soon as the store accepts changes. Clients of these topics wait until then.
      for topic in restored.renewed { topic.saveEpoch() }
    }
    storage.kick()
  }

  /// Notifies the producers of a store's topics that it has begun or ceased to accept records.
  package func storeChanged(_ service: StoreService) {
    let topics = all.filter { $0.storage?.service === service }.sorted { $0.name < $1.name }
    for topic in topics { topic.notify(topic.loopStates) }
  }

  /// Persists new epochs before any client can observe them, so that they are known after another crash. Returns whether they are stored.
  ///
  /// A store that doesn't block commits them before all other changes: its owner serves the topics after ``StoreService/flush(_:)``.
  private func renew(_ topics: [Topic], _ store: any ShardStore) -> Bool {
    let changes = topics.compactMap { $0.rowChange }
    guard !changes.isEmpty else { return true }
    guard store.isBlocking, case .settled(nil) = store.commit(changes, as: 0) else { return false }
    return true
  }

  /// - Returns: the topic, and whether its floor by age is known.
  private func restore(
    _ stored: StoreContents.Topic, _ shard: OpenedShard, _ storage: StoreService, now: MonotonicTime,
    wallClock: Int64
  ) throws(StoreError) -> (Topic, hasFloor: Bool) {
    // Settings that were added in later versions get their defaults.
    let settings = stored.row.settings.completed(by: TopicSettings.standard(in: .durable))
    let topicStorage = StoreTopicState(
      id: stored.id, service: storage, settings: settings, extent: stored.extent,
      floor: stored.row.floor, setbacks: stored.row.setbacks)
    // The first record that a lossless topic keeps until the first of its subscribers returns.
    let owed = topicStorage.floor(before: stored.extent.head)
    var hasFloor = true
    if topicStorage.newest == nil {
      let builder = TopicCommitBuilder(stored.row.name, topicStorage, storage.store)
      builder.raiseFloor(wallClock: wallClock)
      hasFloor = storage.store.isBlocking || !builder.lacksHeaders
    }
    var row = stored.row
    // Clients may have received records that weren't on disk. New records will get the same offsets.
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
      // Returning subscribers may need all records; a lossless topic drops none before the first of them returns.
      state.lastSubscriberOffset =
        settings.flow == .lossless && topicStorage.newest == nil ? owed : stored.extent.head
      var lost: [StoreError] = []
      for producer in producers { restore(producer, into: &state, now, &lost) }
      for cursor in cursors { restore(cursor, into: &state, now, &lost) }
      for group in groups {
        restore(group, of: topic, into: &state, ClockReading(now: now, wallClock: wallClock), &lost)
      }
      return lost
    }
    topic.restored(now: now)
    for error in lost { storage.lost(topic.name, error.message) }
    return (topic, hasFloor)
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
      case .group, .newest: break
      }
    } catch {
      lost.append(error)
    }
  }

  private func restore(
    _ stored: StoredState, of topic: Topic, into state: inout Topic.State,
    _ clocks: ClockReading, _ lost: inout [StoreError]
  ) {
    do throws(StoreError) {
      let group = try StoredGroup(decoding: stored.value)
      let name = try StoredValue.name(stored.key)
      state.groups[name] = Group(
        name: name, restoring: group, topic: topic, epoch: state.epoch, limit: limits.groupRecords,
        at: clocks)
    } catch {
      lost.append(error)
    }
  }
}
