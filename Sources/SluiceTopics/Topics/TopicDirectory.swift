import SluiceIO
import SluiceStore
import SluiceWire

/// Topics by name and in byte order of their names, and the watchers of patterns, which are notified of new topics.
///
/// A value without a lock: it belongs to the ``TopicRegistry``.
package struct TopicDirectory {
  package private(set) var topics: [String: Topic] = [:]
  /// The same topics in order. A copy can be searched without the lock.
  package private(set) var names = NameOrder<Topic>()
  /// The topics that are deleted when they are no longer used.
  private(set) var fleeting = NameOrder<Topic>()
  /// The shards that this node of a cluster serves; none for a broker of one node.
  private(set) var shards = ServedShards()
  /// The topics of each shard by name, if there are shards: opening or leaving a shard doesn't search all topics.
  private var byShard: [ShardID: [String: Topic]] = [:]
  private let routes: ShardRoutes?
  package private(set) var watchers = PatternIndex<any TopicWatcher>()
  private var lastWatch: UInt64 = 0

  /// - Parameter routes: the shards of topics; nil for a broker of one node.
  init(_ routes: ShardRoutes? = nil) {
    self.routes = routes
  }

  /// The topics of a shard, in byte order of their names.
  func topics(of shard: ShardID) -> [Topic] {
    (byShard[shard] ?? [:]).values.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  mutating func open(_ shard: ShardID) { shards.open(shard) }

  mutating func close(_ shard: ShardID) { shards.close(shard) }

  package mutating func add(_ topic: Topic) {
    if let former = topics.updateValue(topic, forKey: topic.name) {
      names.remove(former.name)
      fleeting.remove(former.name)
    }
    names.insert(topic.name, topic)
    if let shard = routes?.shard(of: topic.name) { byShard[shard, default: [:]][topic.name] = topic }
    if topic.settings.autoDelete == true { fleeting.insert(topic.name, topic) }
  }

  mutating func settingsChanged(of topic: Topic) {
    fleeting.remove(topic.name)
    if topic.settings.autoDelete == true { fleeting.insert(topic.name, topic) }
  }

  package mutating func remove(_ topic: Topic) {
    topics[topic.name] = nil
    names.remove(topic.name)
    fleeting.remove(topic.name)
    guard let shard = routes?.shard(of: topic.name) else { return }
    byShard[shard]?[topic.name] = nil
    if byShard[shard]?.isEmpty ?? false { byShard[shard] = nil }
  }

  /// Notifies `watcher` of each new topic that the pattern selects. Returns a number for ``endWatch(_:_:)``.
  package mutating func watch(_ pattern: TopicPattern, _ watcher: any TopicWatcher) -> UInt64 {
    lastWatch += 1
    watchers.insert(pattern, number: lastWatch, watcher)
    return lastWatch
  }

  package mutating func endWatch(_ pattern: TopicPattern, _ number: UInt64) {
    watchers.remove(pattern, number: number)
  }
}

/// Is notified of new topics that a pattern selects.
package protocol TopicWatcher: AnyObject, Sendable {
  /// Handles a topic that was created, or that this node begins to serve, with its first epoch, which may have ended already. On the loop that created it.
  func topicMade(_ topic: Topic, _ epoch: TopicEpoch)
}

/// The shards that a node serves at one moment.
package struct ServedShards: Sendable {
  /// With the number of each one's opening.
  private var openings: [ShardID: UInt64] = [:]
  private var lastOpening: UInt64 = 0

  package init() {}

  package func contains(_ shard: ShardID) -> Bool { openings[shard] != nil }

  /// Whether a shard has been served without a break since `earlier`.
  package func hasKept(_ shard: ShardID, since earlier: ServedShards) -> Bool {
    openings[shard] != nil && openings[shard] == earlier.openings[shard]
  }

  package var set: ShardSet { ShardSet(openings.keys) }

  mutating func open(_ shard: ShardID) {
    lastOpening += 1
    openings[shard] = lastOpening
  }

  mutating func close(_ shard: ShardID) { openings[shard] = nil }
}

/// Visits every topic, a bounded number per loop turn, so that the length of a turn doesn't depend on the number of topics.
///
/// Topics are visited in byte order of their names. A topic made meanwhile is visited if its name follows the last visited one; a topic deleted
/// meanwhile may be left out.
package enum TopicRound {
  /// Topics visited in one turn.
  package static let share = 512

  /// Visits the first share at once, and the others in later turns. On `loop`.
  ///
  /// - Parameters:
  ///   - visit: called on `loop` with each topic.
  ///   - completion: called on `loop` after the last visit, unless the loop ends before.
  package static func run(
    over registry: TopicRegistry, on loop: any EventLoop, after name: String = "",
    visit: @escaping @Sendable (Topic) -> Void, completion: @escaping @Sendable () -> Void = {}
  ) {
    let (topics, more) = registry.page(after: name, atMost: share)
    for topic in topics { visit(topic) }
    guard more, let last = topics.last?.name else { return completion() }
    loop.execute {
      run(over: registry, on: loop, after: last, visit: visit, completion: completion)
    }
  }
}
