import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// The broker's topics by name. Used once per stream or request, never per record. From any loop.
package final class TopicRegistry: Sendable {
  package let pool: SegmentPool
  package let plan: TopicPlan
  package let limits: TopicLimits
  package let host: TopicHost
  let epochs: EpochSource
  package let stores: TopicStores
  /// Which topics other nodes serve; nil for a broker of one node.
  package let routes: ShardRoutes?
  package let state: Mutex<TopicDirectory>
  private let metrics: BrokerMetrics
  package let memory: MemoryWatch?

  /// - Parameters:
  ///   - identity: the broker's identity, from which epoch numbers are made.
  ///   - storage: stores the durable topics of a broker of one node; nil for none.
  ///   - routes: which topics other nodes serve; nil for a broker of one node.
  package init(
    plan: TopicPlan, limits: TopicLimits, identity: UInt64, pool: SegmentPool,
    storage: StoreService? = nil, routes: ShardRoutes? = nil, metrics: BrokerMetrics,
    memory: MemoryWatch? = nil, host: TopicHost = TopicHost()
  ) {
    self.routes = routes
    state = Mutex(TopicDirectory(routes))
    self.plan = plan
    self.limits = limits
    self.pool = pool
    stores = TopicStores(storage, routes)
    self.metrics = metrics
    self.memory = memory
    self.host = host
    epochs = EpochSource(identity: identity)
  }

  package func find(_ name: String) -> Topic? {
    state.withLock { $0.topics[name] }
  }

  /// The topic of that name.
  ///
  /// - Throws: ``ErrorCode/unknownTopic``; ``ErrorCode/topicMoved`` if this node doesn't serve it.
  package func known(_ name: String) throws(WireError) -> Topic {
    if let topic = find(name) { return topic }
    // An invalid name gets its own message, which doesn't repeat the name as it is.
    try TopicName.validate(name)
    guard state.withLock({ serves(name, $0) }) else { throw Self.moved(name) }
    throw Self.unknown(name)
  }

  /// Why a topic that another node serves, or none for now, can't be used here.
  package static func moved(_ name: String) -> WireError {
    WireError(.topicMoved, Fault.topicMoved(name).message)
  }

  private static func unknown(_ name: String) -> WireError {
    WireError(.unknownTopic, "there is no topic \(name)")
  }

  /// The topic of that name, created with the defaults if necessary.
  ///
  /// - Parameters:
  ///   - stated: the settings that the client states; all nil for none.
  ///   - quota: the quota of the client's connection; nil for the broker itself.
  ///   - mayCreate: called if the topic doesn't exist.
  ///   - made: called with a topic that was created.
  /// - Throws: ``ErrorCode/unknownTopic`` if it may not be created; ``ErrorCode/topicExists`` if its settings differ from the stated ones;
  ///   ``ErrorCode/topicMoved`` if this node doesn't serve it.
  package func use(
    _ name: String, stating stated: TopicSettings = TopicSettings(), by quota: TopicQuota? = nil,
    mayCreate: @autoclosure () -> Bool = true,
    made: (Topic) -> Void = { _ in }
  ) throws(WireError) -> Topic {
    let found = state.withLock { state in
      let topic = state.topics[name]
      topic?.reserve()
      return topic
    }
    if let found, stated == TopicSettings() { return found }
    try TopicName.validate(name)
    if found == nil, !state.withLock({ serves(name, $0) }) { throw Self.moved(name) }
    guard found != nil || mayCreate() else { throw Self.unknown(name) }
    return try make(name, stated, stated == TopicSettings() ? .implicit : .stated, by: quota, made: made)
  }

  /// Creates a topic with these settings, or returns the existing one if its settings are equal.
  package func create(
    _ name: String, _ settings: TopicSettings, by quota: TopicQuota? = nil
  ) throws(WireError) -> Topic {
    try TopicName.validate(name)
    return try make(name, settings, .exact, by: quota)
  }

  /// Deletes a topic: from the registry at once, from disk with its next commit.
  @discardableResult
  package func delete(_ name: String) throws(WireError) -> Topic {
    let topic = try known(name)
    let isRemoved = state.withLock { state in
      guard state.topics[name] === topic else { return false }
      state.remove(topic)
      return true
    }
    // Another client may have deleted it first.
    if isRemoved { topic.delete() }
    return topic
  }

  /// Changes settings of a topic.
  ///
  /// - Parameters:
  ///   - changes: the settings to change.
  ///   - now: the present time.
  ///   - wallClock: the same moment in milliseconds since 1970.
  /// - Throws: ``ErrorCode/unknownTopic``; ``ErrorCode/invalidSetting`` for a setting that can't be changed.
  package func change(
    _ topic: Topic, _ changes: TopicSettings, now: MonotonicTime, wallClock: Int64
  ) throws(WireError) {
    try topic.change(changes, now: now, wallClock: wallClock)
    state.withLock { state in
      if state.topics[topic.name] === topic { state.settingsChanged(of: topic) }
    }
  }

  /// Deletes topics with automatic deletion that have been unused for long enough, of a page in byte order of their names.
  ///
  /// - Parameters:
  ///   - name: the name after which the page begins.
  ///   - limit: how many topics are checked, at least 1.
  /// - Returns: the deleted topics, and the name after which the next page begins; nil after the last page.
  @discardableResult
  package func deleteAbandoned(
    after name: String = "", atMost limit: Int = .max, now: MonotonicTime
  ) -> (deleted: [Topic], last: String?) {
    let (abandoned, last) = state.withLock { state in
      let (page, more) = state.fleeting.page(after: name, atMost: limit)
      // Under the lock, so that no client finds a topic that is about to be deleted.
      let abandoned = page.filter { $0.isAbandoned(for: limits.autoDeleteTime, now: now) }
      for topic in abandoned { state.remove(topic) }
      return (abandoned, more ? page.last?.name : nil)
    }
    for topic in abandoned { topic.delete() }
    return (abandoned, last)
  }

  /// Topics in byte order of their names, after that name, and whether more follow.
  package func page(after name: String, atMost limit: Int) -> (values: [Topic], more: Bool) {
    // Searches a copy, so that other loops don't wait.
    state.withLock { $0.names }.page(after: name, atMost: limit)
  }

  /// A page of topics in byte order of their names, and whether there are more.
  ///
  /// - Parameters:
  ///   - spans: the ranges of names to search.
  ///   - isListed: whether a name may be in the page.
  package func list(
    after: String, limit: Int, in spans: [NameSpan] = [.all],
    where isListed: (String) -> Bool = { _ in true }
  ) -> (page: [TopicSummary], more: Bool) {
    // Searches a copy, so that other loops don't wait.
    let names = state.withLock { $0.names }
    var (page, more) = ([TopicSummary](), false)
    names.forEach(after: after, in: spans) { topic in
      guard isListed(topic.name) else { return true }
      more = page.count >= limit
      if !more { page.append(topic.summary) }
      return !more
    }
    return (page, more)
  }

  package var count: Int { state.withLock { $0.topics.count } }

  /// All topics, in byte order of their names, so that an operation on all has the same order each time.
  package var all: [Topic] { state.withLock { $0.names }.values }

  /// How the settings of an existing topic must relate to the stated ones.
  private enum Claim {
    case implicit
    /// It has the named settings.
    case stated
    /// It has the named settings, and the defaults for the others.
    case exact
  }

  private func make(
    _ name: String, _ settings: TopicSettings, _ claim: Claim, by quota: TopicQuota?,
    made: (Topic) -> Void = { _ in }
  ) throws(WireError) -> Topic {
    let complete = plan.completed(settings, of: name)
    try checkStorage(complete, of: name)
    var replaced: Topic?
    let result: Result<(Topic, (TopicEpoch, PatternIndex<any TopicWatcher>)?), WireError> = state.withLock {
      state in
      if let topic = state.topics[name] {
        if claim == .implicit { return .success((topic, nil)) }
        do throws(WireError) {
          switch try topic.adopt(settings, completed: complete, isExact: claim == .exact) {
          case .holds:
            state.settingsChanged(of: topic)
            return .success((topic, nil))
          case .needsAnotherTopic:
            state.remove(topic)
            replaced = topic
          }
        } catch {
          return .failure(error)
        }
      }
      guard serves(name, state) else { return .failure(Self.moved(name)) }
      guard state.topics.count < limits.topics else {
        metrics.add(.refusedTopics)
        return .failure(
          WireError(
            .limitReached,
            "the broker has \(limits.topics) topics, the limit; delete some, or raise --max-topics"
          ))
      }
      if let quota, quota.used >= limits.topicsPerConnection {
        metrics.add(.refusedTopicsPerConnection)
        return .failure(
          WireError(
            .limitReached,
            "this connection has created \(limits.topicsPerConnection) topics that still exist, the limit; delete some, or raise --max-topics-per-connection"
          ))
      }
      let kept: KeptAccount.Charge?
      do throws(WireError) {
        let account = quota?.account ?? memory?.accounts.broker
        kept = try account?.charge(Topic.bytes(of: name), isPlain: true)
      } catch {
        return .failure(error)
      }
      let topic = newTopic(name, complete, kept)
      quota?.made()
      topic.state.withLock {
        $0.quota = quota
        $0.isStated = claim != .implicit
      }
      state.add(topic)
      return .success((topic, (topic.epoch, state.watchers)))
    }
    replaced?.delete()
    let (topic, new) = try result.get()
    if new != nil {
      topic.commit(within: .zero)
      made(topic)
    }
    // Searches a copy, so that other loops don't wait: a pattern watched meanwhile finds the topic in the registry.
    if let (epoch, watchers) = new {
      let selecting = watchers.values(selecting: name)
      for watcher in selecting { watcher.topicMade(topic, epoch) }
      quota?.told(selecting.count)
    }
    return topic
  }

  /// Checks that the topic of that name, existing or new, would keep every dead letter. A compact topic keeps only the newest record of a key, and no record
  /// without a key.
  ///
  /// - Throws: ``ErrorCode/unsupported``.
  package func checkTakesDeadLetters(_ name: String) throws(WireError) {
    let settings = find(name)?.settings ?? plan.completed(TopicSettings(), of: name)
    guard settings.compact == true else { return }
    throw WireError(
      .unsupported,
      "topic \(name) is compact: it keeps the newest record of each key, and dead letters must all be kept; name a topic that isn't compact, or delete it and create it otherwise"
    )
  }

  private func newTopic(_ name: String, _ settings: TopicSettings, _ kept: KeptAccount.Charge?) -> Topic {
    if settings.storage == .durable, let storage = stores.service(for: name) {
      return newDurable(name, settings, storage, kept)
    }
    return Topic(
      name: name, settings: settings, limits: limits, memory: memory, kept: kept
    ) { [epochs, pool] settings in
      guard settings.compact == true else {
        return TopicEpoch(number: epochs.next(), log: TopicLog(retention: settings.retention, pool: pool))
      }
      // The log is for subscribers that follow the head; the retention limits apply to the compacted records.
      return TopicEpoch(
        number: epochs.next(), log: TopicLog(retention: .none, pool: pool),
        newest: CompactedRecords(retention: settings.retention, pool: pool))
    }
  }

  // MARK: Patterns

  /// Finds the topics that a pattern selects, and notifies `watcher` of each new one: each topic is reported exactly once.
  ///
  /// - Returns: the number for ``endWatch(_:_:)``, a search of the existing topics, and the shards to which they belong.
  package func watch(
    _ pattern: TopicPattern, _ watcher: any TopicWatcher
  ) throws(WireError) -> (number: UInt64, topics: PatternWalk<Topic>, shards: ServedShards) {
    let found: (number: UInt64, names: NameOrder<Topic>, shards: ServedShards)? = state.withLock { state in
      guard state.watchers.count < limits.patterns else {
        metrics.add(.refusedPatterns)
        return nil
      }
      return (state.watch(pattern, watcher), state.names, state.shards)
    }
    guard let found else {
      throw WireError(
        .limitReached, "the broker has \(limits.patterns) subscriptions to patterns, which is its limit")
    }
    return (found.number, PatternWalk(pattern, in: found.names), found.shards)
  }

  /// A search of the topics that a pattern selects at the moment.
  package func topics(selectedBy pattern: TopicPattern) -> PatternWalk<Topic> {
    PatternWalk(pattern, in: state.withLock { $0.names })
  }

  /// Ends a watch. A call of the watcher in progress may still arrive.
  package func endWatch(_ pattern: TopicPattern, _ number: UInt64) {
    state.withLock { $0.endWatch(pattern, number) }
  }

  var watches: Int { state.withLock { $0.watchers.count } }
}
