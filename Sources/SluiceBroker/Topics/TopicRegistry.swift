import SluiceIO
import SluiceLog
import SluiceWire
import Synchronization

/// The broker's topics by name. Asked once per stream or request, never per record. From any loop.
final class TopicRegistry: Sendable {
  /// Told of a topic that was made, and its first epoch, which may be over when it is looked at. Called on the loop that made it.
  typealias Watcher = @Sendable (Topic, TopicEpoch) -> Void

  struct State {
    fileprivate(set) var topics: [String: Topic] = [:]
    /// The same in order.
    fileprivate var names = NameOrder<Topic>()
    /// Those of them that are deleted when nobody uses them.
    fileprivate var fleeting = NameOrder<Topic>()
    var watchers = PatternIndex<Watcher>()
    var lastWatch: UInt64 = 0
  }

  let pool: SegmentPool
  /// What new topics are, which may change.
  private let plan: Mutex<(defaults: TopicSettings, rules: [TopicRule])>
  private let limit: Int
  private let limitPerConnection: Int
  private let watchLimit: Int
  let window: UInt64
  let producers: ProducerTable.Limits
  private let autoDeleteTime: Duration
  let cursors: CursorTable.Limits
  let epochs: EpochSource
  /// Nil for a broker without a directory for durable topics.
  let storage: StoreService?
  let state = Mutex(State())
  private let metrics: BrokerMetrics
  let memory: MemoryWatch?

  /// - Parameter identity: the broker's, from which epochs are made.
  init(
    configuration: BrokerConfiguration, identity: UInt64, pool: SegmentPool? = nil,
    storage: StoreService? = nil, metrics: BrokerMetrics = BrokerMetrics(),
    memory: MemoryWatch? = nil
  ) {
    self.memory = memory
    self.metrics = metrics
    self.pool = pool ?? SegmentPool(maximumPooledBytes: configuration.limits.pooledMemory)
    self.storage = storage
    plan = Mutex((configuration.topicDefaults, configuration.topicRules))
    limit = configuration.limits.topics
    limitPerConnection = configuration.limits.topicsPerConnection
    watchLimit = configuration.limits.patterns
    window = configuration.limits.producerWindow
    producers = ProducerTable.Limits(
      producers: configuration.limits.producers, memory: configuration.limits.producerMemory)
    autoDeleteTime = configuration.limits.autoDeleteTime
    cursors = CursorTable.Limits(
      cursors: configuration.limits.cursors, memory: configuration.limits.cursorMemory)
    epochs = EpochSource(identity: identity)
  }

  /// Has new topics be otherwise from now on.
  func update(defaults: TopicSettings, rules: [TopicRule]) {
    plan.withLock { $0 = (defaults, rules) }
  }

  func find(_ name: String) -> Topic? {
    state.withLock { $0.topics[name] }
  }

  /// The topic of that name, which must be there.
  func known(_ name: String) throws(WireError) -> Topic {
    if let topic = find(name) { return topic }
    // A name that isn't one is described with care, and not repeated as it is.
    try TopicName.validate(name)
    throw Self.unknown(name)
  }

  private static func unknown(_ name: String) -> WireError {
    WireError(.unknownTopic, "there is no topic \(name)")
  }

  /// The topic of that name, made with the defaults if there is none.
  ///
  /// - Parameters:
  ///   - stated: what its user says of it; all nil for nothing.
  ///   - quota: of the connection that wants it; nil for the broker itself.
  ///   - mayCreate: asked when there is none.
  ///   - made: called when it was made.
  /// - Throws: ``ErrorCode/unknownTopic`` when it may not be made; ``ErrorCode/topicExists`` when it has other settings than are stated.
  func use(
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
    guard found != nil || mayCreate() else { throw Self.unknown(name) }
    return try make(name, stated, stated == TopicSettings() ? .implicit : .stated, by: quota, made: made)
  }

  /// Makes a topic with settings of its own, or finds it there with the same.
  func create(
    _ name: String, _ settings: TopicSettings, by quota: TopicQuota? = nil
  ) throws(WireError) -> Topic {
    try TopicName.validate(name)
    return try make(name, settings, .exact, by: quota)
  }

  /// - Returns: the topic, which is gone from here; from the disk it is with its next commit.
  @discardableResult
  func delete(_ name: String) throws(WireError) -> Topic {
    let topic = try known(name)
    let isRemoved = state.withLock { state in
      guard state.topics[name] === topic else { return false }
      state.remove(topic)
      return true
    }
    // Somebody else may have been quicker; it is gone either way.
    if isRemoved { topic.delete() }
    return topic
  }

  /// Looks at some of the topics that are there for their users only, in byte order of their names, and deletes those without any.
  ///
  /// - Parameters:
  ///   - name: behind which to begin.
  ///   - limit: how many are looked at, at least 1.
  /// - Returns: those that were deleted, and the name behind which to go on; nil when there are no more.
  @discardableResult
  func deleteAbandoned(
    after name: String = "", atMost limit: Int = .max, now: MonotonicTime
  ) -> (deleted: [Topic], last: String?) {
    let (abandoned, last) = state.withLock { state in
      let (page, more) = state.fleeting.page(after: name, atMost: limit)
      // Under the lock, so that no client finds one that is about to go.
      let abandoned = page.filter { $0.isAbandoned(for: autoDeleteTime, now: now) }
      for topic in abandoned { state.remove(topic) }
      return (abandoned, more ? page.last?.name : nil)
    }
    for topic in abandoned { topic.delete() }
    return (abandoned, last)
  }

  /// Topics in byte order of their names, behind that name, and whether there are more behind these.
  func page(after name: String, atMost limit: Int) -> (values: [Topic], more: Bool) {
    // A copy, so that other loops don't wait for the search.
    state.withLock { $0.names }.page(after: name, atMost: limit)
  }

  /// A page of topics in byte order of their names, and whether there are more.
  ///
  /// - Parameters:
  ///   - spans: where to look.
  ///   - isListed: asked for the names there that may come into the page.
  func list(
    after: String, limit: Int, in spans: [NameSpan] = [.all],
    where isListed: (String) -> Bool = { _ in true }
  ) -> (page: [TopicSummary], more: Bool) {
    // A copy, so that nobody waits for the search.
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

  var count: Int { state.withLock { $0.topics.count } }

  /// Every topic, in no order.
  var all: [Topic] { state.withLock { Array($0.topics.values) } }

  /// What a topic that is there already has to do with the settings given.
  private enum Claim {
    case implicit
    /// It has those that are named.
    case stated
    /// It has those that are named, and the defaults besides.
    case exact
  }

  private func make(
    _ name: String, _ settings: TopicSettings, _ claim: Claim, by quota: TopicQuota?,
    made: (Topic) -> Void = { _ in }
  ) throws(WireError) -> Topic {
    let complete = completed(settings, of: name)
    try checkStorage(complete, of: name)
    var replaced: Topic?
    let result: Result<(Topic, (TopicEpoch, PatternIndex<Watcher>)?), WireError> = state.withLock { state in
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
      guard state.topics.count < limit else {
        metrics.add(.refusedTopics)
        return .failure(
          WireError(
            .limitReached,
            "the broker has \(limit) topics, which is its limit; delete some, or have it raised (--max-topics)"
          ))
      }
      if let refusal = memory?.kept.refusal { return .failure(refusal) }
      if let quota, quota.used >= limitPerConnection {
        metrics.add(.refusedTopicsPerConnection)
        return .failure(
          WireError(
            .limitReached,
            "this connection has made \(limitPerConnection) topics that are still there, which is its limit; delete some, or have it raised (--max-topics-per-connection)"
          ))
      }
      let topic = newTopic(name, complete)
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
    // A copy, so that nobody waits for the search: those that come meanwhile find the topic there.
    if let (epoch, watchers) = new {
      let selecting = watchers.values(selecting: name)
      for tell in selecting { tell(topic, epoch) }
      quota?.told(selecting.count)
    }
    return topic
  }

  /// The settings of a topic that is made with these.
  private func completed(_ settings: TopicSettings, of name: String) -> TopicSettings {
    let (defaults, rules) = plan.withLock { $0 }
    let rule = rules.first { $0.pattern.matches(name) }?.settings ?? Self.builtIn(name)
    return settings.completed(by: rule).completed(by: defaults).completed
  }

  /// Checks that the topic of that name, or the one that would be made, keeps every record that a group gives up. A compact topic keeps the
  /// newest record of a key only, and none without a key.
  ///
  /// - Throws: ``ErrorCode/unsupported``.
  func checkTakesDeadLetters(_ name: String) throws(WireError) {
    let settings = find(name)?.settings ?? completed(TopicSettings(), of: name)
    guard settings.compact == true else { return }
    throw WireError(
      .unsupported,
      "topic \(name) is compact: it keeps the newest record of each key, and dead letters must all be kept; name a topic that isn't compact, or delete it and create it otherwise"
    )
  }

  private func newTopic(_ name: String, _ settings: TopicSettings) -> Topic {
    if settings.storage == .durable, let storage { return newDurable(name, settings, storage) }
    return Topic(
      name: name, settings: settings, window: window, memory: memory, producers: producers, cursors: cursors
    ) { [epochs, pool] in
      guard settings.compact == true else {
        return TopicEpoch(number: epochs.next(), log: TopicLog(retention: settings.retention, pool: pool))
      }
      // The log is for those who follow the head; what the limits are about is elsewhere.
      return TopicEpoch(
        number: epochs.next(), log: TopicLog(retention: .none, pool: pool),
        newest: CompactedRecords(retention: settings.retention, pool: pool))
    }
  }

  /// What a name says of a topic unless a rule does. Inboxes, to which replies come, keep nothing for others and go with their owner.
  private static func builtIn(_ name: String) -> TopicSettings {
    guard TopicName.isInbox(name) else { return TopicSettings() }
    var settings = TopicSettings(replayRecords: 0)
    settings.autoDelete = true
    settings.storage = .memory
    return settings
  }

  // MARK: Patterns

  /// Finds the topics that a pattern selects, and from then on tells `watcher` of those that are made: each topic is in the one or the other,
  /// and in one only.
  ///
  /// - Returns: the number under which it is to be ended, and a search for the topics that were there.
  func watch(
    _ pattern: TopicPattern, _ watcher: @escaping Watcher
  ) throws(WireError) -> (number: UInt64, topics: PatternWalk) {
    let found: (number: UInt64, names: NameOrder<Topic>)? = state.withLock { state in
      guard state.watchers.count < watchLimit else {
        metrics.add(.refusedPatterns)
        return nil
      }
      state.lastWatch += 1
      state.watchers.insert(pattern, number: state.lastWatch, watcher)
      return (state.lastWatch, state.names)
    }
    guard let found else {
      throw WireError(
        .limitReached, "the broker has \(watchLimit) subscriptions to patterns, which is its limit")
    }
    return (found.number, PatternWalk(pattern, in: found.names))
  }

  /// A search for the topics that a pattern selects at the moment.
  func topics(selectedBy pattern: TopicPattern) -> PatternWalk {
    PatternWalk(pattern, in: state.withLock { $0.names })
  }

  /// Nobody wants to know any more. What is being told at this moment may still come.
  func endWatch(_ pattern: TopicPattern, _ number: UInt64) {
    state.withLock { $0.watchers.remove(pattern, number: number) }
  }

  var watches: Int { state.withLock { $0.watchers.count } }
}

extension TopicRegistry.State {
  mutating func add(_ topic: Topic) {
    if let former = topics.updateValue(topic, forKey: topic.name) {
      names.remove(former.name)
      fleeting.remove(former.name)
    }
    names.insert(topic.name, topic)
    if topic.settings.autoDelete == true { fleeting.insert(topic.name, topic) }
  }

  mutating func settingsChanged(of topic: Topic) {
    fleeting.remove(topic.name)
    if topic.settings.autoDelete == true { fleeting.insert(topic.name, topic) }
  }

  mutating func remove(_ topic: Topic) {
    topics[topic.name] = nil
    names.remove(topic.name)
    fleeting.remove(topic.name)
  }
}
