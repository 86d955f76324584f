import SluiceTopics
import SluiceWire

/// Finds problems in snapshots of a broker: the input is a snapshot, the output a list of problems.
///
/// A value without a clock. It keeps the time at which it first found each problem, and the counters of the last minute, so the caller passes one
/// snapshot after another to the same value, about once a second. Its size is bounded by the size of the snapshots.
public struct ProblemFinder: Sendable {
  private struct Key: Hashable {
    var kind: Problem.Kind
    var place: Problem.Place
  }

  private let limits: ProblemLimits
  private var found: [Key: Int64] = [:]
  private var counters = RecentGrowth<Key>()
  private var problems: [Problem] = []
  /// All problems of the last snapshot by kind, those included that ``problems(in:_:)`` has left out; the most urgent kinds first.
  public private(set) var kinds: [ProblemKind] = []
  private var now: Int64 = 0

  public init(_ limits: ProblemLimits = ProblemLimits()) {
    self.limits = limits
  }

  /// Returns the problems in a snapshot: critical ones first, then the oldest first. At most ``ProblemLimits/perKind`` of a kind.
  ///
  /// - Parameters:
  ///   - snapshot: with the consumers and a few subscriptions of each topic.
  ///   - cluster: this node's view of its cluster; nil for a broker of one node.
  public mutating func problems(in snapshot: BrokerSnapshot, _ cluster: ClusterInfo? = nil) -> [Problem] {
    now = snapshot.time
    problems = []
    counters.begin()
    findStorage(snapshot)
    findMemory(snapshot)
    findKeptMemory(snapshot)
    if let cluster { findCluster(cluster) }
    findCounters(snapshot)
    for topic in snapshot.topics {
      findHolds(topic)
      findLag(topic)
      findLosses(topic)
      findTimes(topic)
    }
    let keys = Set(problems.map { Key(kind: $0.kind, place: $0.place) })
    found = found.filter { keys.contains($0.key) }
    let sorted = problems.sorted { ($0.severity, $0.since) < ($1.severity, $1.since) }
    kinds = Self.kinds(of: sorted)
    return limited(sorted)
  }

  /// - Parameter age: the age of the problem in milliseconds; nil if it isn't known.
  private mutating func add(
    _ kind: Problem.Kind, _ severity: Problem.Severity, at place: Problem.Place, for age: UInt64? = nil,
    _ sentence: String
  ) {
    let key = Key(kind: kind, place: place)
    let since = age.map { now - Int64(clamping: $0) } ?? found[key] ?? now
    found[key] = since
    problems.append(Problem(kind, severity, at: place, sentence, since: since))
  }

  /// - Parameter sorted: the most urgent first.
  private static func kinds(of sorted: [Problem]) -> [ProblemKind] {
    var kinds: [ProblemKind] = []
    for problem in sorted {
      if let index = kinds.firstIndex(where: { $0.kind == problem.kind }) {
        kinds[index].count += 1
        kinds[index].since = min(kinds[index].since, problem.since)
        kinds[index].sentence = ProblemText.sentence(problem.kind, UInt64(kinds[index].count))
      } else {
        kinds.append(
          ProblemKind(
            kind: problem.kind, severity: problem.severity, since: problem.since, count: 1,
            sentence: problem.sentence))
      }
    }
    return kinds
  }

  /// The most urgent of each kind.
  private func limited(_ sorted: [Problem]) -> [Problem] {
    var counts: [Problem.Kind: Int] = [:]
    return sorted.filter { problem in
      counts[problem.kind, default: 0] += 1
      return counts[problem.kind]! <= limits.perKind
    }
  }

  /// Returns the growth of a counter within the last minute.
  private mutating func growth(_ kind: Problem.Kind, _ place: Problem.Place, _ value: UInt64) -> UInt64 {
    counters.of(Key(kind: kind, place: place), value, at: now)
  }

  // MARK: The broker

  private mutating func findStorage(_ snapshot: BrokerSnapshot) {
    guard let storage = snapshot.storage else { return }
    let waiting = storage.waiting == 0 ? "" : " (\(ProblemText.blocked(storage.waiting)))"
    switch storage.state {
    case .full:
      add(
        .storageFull, .critical, at: .storage, for: storage.since,
        "\(ProblemText.full(storage)). Publishing to durable topics is paused\(waiting): delete or trim topics, or raise --storage-limit."
      )
    case .failing:
      add(
        .storageFailing, .critical, at: .storage, for: storage.since,
        "The store fails: \(storage.message)\(waiting).")
    default:
      guard let share = storage.fullness, share >= limits.fullness else { return }
      add(.storageNearlyFull, .warning, at: .storage, ProblemText.fullness(storage))
    }
  }

  private mutating func findCluster(_ cluster: ClusterInfo) {
    let engine = cluster.engine
    if !engine.isConnected {
      let cause = engine.problems.first.map { ": \($0)" } ?? ""
      add(
        .engineUnreachable, .critical, at: .cluster,
        "The node isn't connected to the cluster's engine: publishing to its durable topics is paused\(cause)."
      )
    } else if !cluster.unreadiness.isEmpty {
      add(.nodeNotReady, .critical, at: .cluster, "The node isn't ready to serve: \(cluster.unreadiness).")
    }
    if engine.isConnected {
      for problem in engine.problems where !cluster.unreadiness.contains(problem) {
        add(.engineDegraded, .warning, at: .cluster, ProblemText.sentence(problem))
      }
    }
    for node in cluster.nodes where !node.problem.isEmpty {
      add(
        .nodeUnreachable, node.shards > 0 ? .critical : .warning, at: .node(node.name),
        ProblemText.sentence(node.problem))
    }
    let free = cluster.shards.count { $0.state == .free }
    if free > 0 {
      add(
        .shardsWithoutOwner, .warning, at: .cluster,
        "\(free) of the cluster's \(cluster.shardCount) shards \(free == 1 ? "has" : "have") no owner: topics of \(free == 1 ? "that shard" : "those shards") can't be used."
      )
    }
    if engine.isUnsafe {
      add(
        .engineUnsafe, .warning, at: .cluster,
        "The node uses an engine that may lose acknowledged records, because of --engine-unsafe.")
    }
  }

  private mutating func findMemory(_ snapshot: BrokerSnapshot) {
    let metrics = Dictionary(snapshot.metrics.map { ($0.metric, $0.value) }, uniquingKeysWith: max)
    guard let used = metrics[.memoryUsed], let ceiling = metrics[.memoryCeiling], ceiling > 0 else { return }
    let share = Double(used) / Double(ceiling)
    guard share >= limits.fullness else { return }
    let amount = "\(ProblemText.bytes(UInt64(max(used, 0)))) of \(ProblemText.bytes(UInt64(ceiling)))"
    if share >= 1 {
      add(
        .memoryFull, .critical, at: .broker,
        "The memory is full: \(amount). Producers of topics in memory are blocked: delete or trim topics, or raise --memory."
      )
    } else {
      add(
        .memoryNearlyFull, .warning, at: .broker,
        "The memory is \(ProblemText.percent(share)) full: \(amount). At 100 % it blocks producers of topics in memory."
      )
    }
  }

  /// Memory used besides records: all of it by all clients together, or nearly the whole share of one client.
  private mutating func findKeptMemory(_ snapshot: BrokerSnapshot) {
    guard let kept = snapshot.kept, kept.isFull || !kept.nearlyFull.isEmpty else { return }
    let remedy = ProblemText.keptRemedy(snapshot.topics)
    if kept.isFull {
      let most =
        kept.largest.map { "; \($0.owner) has the most, \(ProblemText.bytes(UInt64(max($0.used, 0))))" } ?? ""
      add(
        .keptMemoryFull, .critical, at: .broker,
        "The memory for topics, cursors, groups and subscriptions is used up, and only plain subscriptions and publications are accepted: \(ProblemText.bytes(UInt64(max(kept.used, 0)))) of \(ProblemText.bytes(UInt64(max(kept.limit, 0))))\(most). \(remedy), or raise --memory."
      )
    }
    for account in kept.nearlyFull where account.share > 0 {
      let share = Double(max(account.used, 0)) / Double(account.share)
      add(
        .keptMemoryShareNearlyFull, .warning, at: .account(account.owner),
        "\(ProblemText.capitalized(account.owner)) has used \(ProblemText.percent(share)) of its share of the memory for topics, cursors, groups and subscriptions: \(ProblemText.bytes(UInt64(max(account.used, 0)))) of \(ProblemText.bytes(UInt64(account.share))). \(remedy), or raise \(account.setting)."
      )
    }
  }

  private mutating func findCounters(_ snapshot: BrokerSnapshot) {
    let metrics = Dictionary(snapshot.metrics.map { ($0.metric, $0.value) }, uniquingKeysWith: max)
    func sum(_ counters: [BrokerMetric]) -> UInt64 {
      UInt64(max(counters.reduce(0) { $0 + metrics[$1, default: 0] }, 0))
    }
    let rejected = growth(
      .rejectedLogins, .connections, sum([.failedAuthentications, .refusedAuthentications]))
    let slowed = growth(.rejectedLogins, .broker, sum([.slowedAuthentications]))
    if slowed >= UInt64(limits.rejectedLogins) {
      // After a rejected login, others from its address wait, so few are rejected within a minute.
      add(
        .rejectedLogins, .warning, at: .connections,
        "\(ProblemText.counted(rejected, "login")) \(ProblemText.were(rejected)) rejected within the last minute, and \(ProblemText.grouped(slowed)) delayed after rejected ones from the same address."
      )
    } else if rejected >= UInt64(limits.rejectedLogins) {
      add(
        .rejectedLogins, .warning, at: .connections,
        "\(ProblemText.counted(rejected, "login")) \(ProblemText.were(rejected)) rejected within the last minute."
      )
    }
    let refused = growth(
      .refusedConnections, .connections,
      sum([
        .refusedConnections, .refusedConnectionsPerAddress, .refusedConnectionsPerIdentity,
        .refusedDescriptors,
      ]))
    if refused > 0 {
      add(
        .refusedConnections, .warning, at: .connections,
        "\(ProblemText.counted(refused, "connection")) \(ProblemText.were(refused)) refused within the last minute: a limit on connections is reached."
      )
    }
    let slow = growth(.slowLoops, .broker, snapshot.loops.reduce(0) { $0 + $1.slowTurns })
    if slow >= limits.slowTurns {
      add(
        .slowLoops, .warning, at: .broker,
        "Event loops were busy for more than 134 ms \(ProblemText.counted(slow, "time")) within the last minute, which delayed their connections."
      )
    }
  }

  // MARK: Topics

  /// The topic for a subscription of another node's client, whose connection isn't one of this broker's.
  private static func place(of subscription: TopicInfo.Subscription, topic: String) -> Problem.Place {
    subscription.node.isEmpty ? .connection(subscription.connection, topic: topic) : .topic(topic)
  }

  private mutating func findHolds(_ topic: TopicSnapshot) {
    let name = topic.summary.topic
    let holders = topic.subscriptions.filter {
      $0.info.holding >= limits.hold || $0.info.lastMinute >= limits.holdShare
    }
    for holder in holders.prefix(3) {
      let reason =
        holder.isBlocked ? "it doesn't read what it was sent" : ProblemText.limit(holder.info.limit)
      let isNow = holder.info.holding > 0
      add(
        .heldUp, .warning, at: Self.place(of: holder.info, topic: name),
        for: isNow ? holder.info.holding : nil,
        "\(ProblemText.client(holder)) \(isNow ? "blocks" : "has blocked") the producers of \(name): \(reason); \(ProblemText.shares(holder.info.lastMinute, holder.info.lastFiveMinutes))."
      )
    }
    guard holders.isEmpty, topic.heldUp >= limits.hold else { return }
    if topic.waitingForStorage > 0 {
      add(
        .heldUp, .warning, at: .topic(name), for: topic.heldUp,
        "\(ProblemText.blocked(topic.waitingForStorage, of: name)) by the store.")
    } else if let hold = topic.holds.first(where: { $0.milliseconds > 0 && $0.reason != .subscribers }) {
      add(
        .heldUp, .warning, at: .topic(name), for: topic.heldUp,
        "The producers of \(name) are blocked: \(ProblemText.reason(hold.reason)); \(ProblemText.shares(hold.lastMinute, hold.lastFiveMinutes))."
      )
    } else {
      let why =
        topic.summary.subscriptions == 0 ? "it has no subscriber" : "no subscriber has requested records"
      add(
        .heldUp, .warning, at: .topic(name), for: topic.heldUp,
        "The producers of \(name) are blocked: \(why).")
    }
  }

  private mutating func findLag(_ topic: TopicSnapshot) {
    let name = topic.summary.topic
    for consumer in topic.consumers.furthest where consumer.lag > 0 {
      guard consumer.age != TopicInfo.Consumer.unknown, consumer.age >= limits.lag else { continue }
      add(
        .consumerLag, .warning, at: .consumer(consumer.name, topic: name),
        ProblemText.lag(consumer, of: name))
    }
    // Subscriptions that block producers are reported above, and groups as consumers.
    for subscription in topic.subscriptions where subscription.lag > 0 && subscription.age >= limits.lag {
      guard subscription.info.holding == 0, !subscription.isMember else { continue }
      add(
        .subscriberLag, .warning, at: Self.place(of: subscription.info, topic: name),
        ProblemText.lag(subscription, of: name))
    }
  }

  private mutating func findTimes(_ topic: TopicSnapshot) {
    guard topic.lead > 0 else { return }
    add(
      .timesAhead, .warning, at: .topic(topic.summary.topic),
      "The broker's clock was set back: records of \(topic.summary.topic) have times up to \(ProblemText.time(topic.lead)) ahead of it, and expire later by as much."
    )
  }

  private mutating func findLosses(_ topic: TopicSnapshot) {
    let place = Problem.Place.topic(topic.summary.topic)
    let missed = growth(.missedRecords, place, topic.traffic.missed)
    if missed > 0 {
      add(
        .missedRecords, .critical, at: place,
        "Subscribers of \(topic.summary.topic) missed \(ProblemText.records(missed)) within the last minute: a limit or a trim dropped them first."
      )
    }
    if let lost = topic.lost {
      add(
        .lostHistory, .warning, at: place, for: lost.age,
        "The store has lost records of \(topic.summary.topic) that a client has received, offsets \(lost.from) to \(lost.before - 1), because of a crash or because it is an older copy. The client continues at \(lost.from)."
      )
    }
    let dead = growth(.deadLetters, place, topic.consumers.deadLetters &+ topic.consumers.abandoned)
    if dead > 0 {
      add(
        .deadLetters, .warning, at: place,
        "Groups of \(topic.summary.topic) gave up \(ProblemText.records(dead)) within the last minute.")
    }
  }
}
