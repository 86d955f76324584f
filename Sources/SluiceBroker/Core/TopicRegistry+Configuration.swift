import SluiceLog
import SluiceTopics
import SluiceWire

extension TopicLimits {
  init(_ limits: BrokerLimits) {
    self.init()
    topics = limits.topics
    topicsPerConnection = limits.topicsPerConnection
    patterns = limits.patterns
    producerWindow = limits.producerWindow
    producers = limits.producers
    producerMemory = limits.producerMemory
    cursors = limits.cursors
    cursorMemory = limits.cursorMemory
    groupRecords = limits.groupRecords
    record = limits.record
    autoDeleteTime = limits.autoDeleteTime
    topicBacklog = limits.topicBacklog
    storageBacklog = limits.storageBacklog
    catchUpMemory = limits.catchUpMemory
  }
}

extension TopicRegistry {
  /// - Parameter identity: the broker's identity, from which epoch numbers are made.
  convenience init(
    _ configuration: BrokerConfiguration, identity: UInt64, pool: SegmentPool? = nil,
    storage: StoreService? = nil, routes: ShardRoutes? = nil, metrics: BrokerMetrics = BrokerMetrics(),
    memory: MemoryWatch? = nil, host: TopicHost = TopicHost()
  ) {
    self.init(
      plan: TopicPlan(defaults: configuration.topicDefaults, rules: configuration.topicRules),
      limits: TopicLimits(configuration.limits), identity: identity,
      pool: pool ?? SegmentPool(maximumPooledBytes: configuration.limits.pooledMemory), storage: storage,
      routes: routes, metrics: metrics, memory: memory, host: host)
  }
}

extension BrokerEvent {
  init(_ event: TopicHost.Event) {
    self =
      switch event {
      case .created(let topic): .topicCreated(nil, topic: topic)
      case .producerLost(let topic): .topicEnded(nil, topic: topic, failure: .producerLost)
      case .deadLettersWait(let topic, let group, let deadLetters, let error):
        .deadLettersWait(topic: topic, group: group, deadLetters: deadLetters, error)
      }
  }
}
