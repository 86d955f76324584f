import SluiceTopics
import SluiceWire

/// The words of problems.
enum ProblemText {
  /// "245 ms", "12 s", "5 min 12 s", "2 h 5 min", "3 days".
  static func time(_ milliseconds: UInt64) -> String {
    let seconds = milliseconds / 1000
    return switch seconds {
    case 0: "\(milliseconds) ms"
    case ..<60: "\(seconds) s"
    case ..<3600: "\(seconds / 60) min \(seconds % 60) s"
    case ..<172_800: "\(seconds / 3600) h \(seconds / 60 % 60) min"
    default: "\(seconds / 86_400) days"
    }
  }

  static func bytes(_ bytes: UInt64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"]
    var (value, unit) = (Double(bytes), 0)
    while value >= 1024, unit + 1 < units.count { (value, unit) = (value / 1024, unit + 1) }
    let rounded = unit == 0 || value >= 100 ? "\(Int(value))" : "\((value * 10).rounded() / 10)"
    return "\(rounded) \(units[unit])"
  }

  /// A sentence about several problems of one kind.
  static func sentence(_ kind: Problem.Kind, _ count: UInt64) -> String {
    let number = grouped(count)
    return switch kind {
    case .heldUp: "Producers are blocked in \(number) places."
    case .consumerLag: "\(number) durable cursors and groups are behind."
    case .subscriberLag: "\(number) subscriptions are behind."
    case .missedRecords: "Subscribers of \(number) topics have missed records within the last minute."
    case .lostHistory: "The store has lost records of \(number) topics that clients have received."
    case .timesAhead:
      "Records of \(number) topics have times ahead of the broker's clock, which was set back."
    case .nodeUnreachable: "\(number) nodes of the cluster can't be reached."
    case .deadLetters: "Groups of \(number) topics gave up records within the last minute."
    case .keptMemoryShareNearlyFull:
      "\(number) identities or addresses have nearly used up their share of the memory for topics, cursors, groups and subscriptions."
    default: "\(number) problems of the kind \(kind.rawValue)."
    }
  }

  /// Says which data to delete if clients make the broker keep too much: cursors and groups of the topics that have the most of them.
  static func keptRemedy(_ topics: [TopicSnapshot]) -> String {
    let most = topics.lazy.map { (name: $0.summary.topic, consumers: $0.consumers) }
      .filter { $0.consumers.count >= 100 }
      .min { ($1.consumers.count, $0.name) < ($0.consumers.count, $1.name) }
    let base = "Delete topics, durable cursors and groups that aren't needed"
    guard let first = most else { return "\(base) (sluice topic list, sluice cursor list TOPIC)" }
    let (cursors, groups) = (UInt64(first.consumers.cursors), UInt64(first.consumers.groups))
    return
      "\(base): topic \(first.name) has \(counted(cursors, "cursor")) and \(counted(groups, "group")) (sluice cursor list \(first.name), sluice cursor delete \(first.name) NAME)"
  }

  /// Returns the sentence with its first letter capitalized.
  static func capitalized(_ sentence: String) -> String {
    sentence.prefix(1).uppercased() + sentence.dropFirst()
  }

  /// Returns a problem's text as a sentence, with a capital letter and a full stop.
  static func sentence(_ text: String) -> String { capitalized(text) + "." }

  static func percent(_ share: Double) -> String { "\(Int((share * 100).rounded(.down))) %" }

  static func records(_ count: UInt64) -> String { counted(count, "record") }

  /// "1 login", "12 logins".
  static func counted(_ count: UInt64, _ what: String) -> String {
    "\(grouped(count)) \(what)\(count == 1 ? "" : "s")"
  }

  /// "1,234,567".
  static func grouped(_ count: UInt64) -> String {
    var digits = Array(String(count))
    for index in stride(from: digits.count - 3, to: 0, by: -3) { digits.insert(",", at: index) }
    return String(digits)
  }

  static func were(_ count: UInt64) -> String { count == 1 ? "was" : "were" }

  /// "1 producer is blocked", "12 producers of orders are blocked".
  static func blocked(_ count: Int, of topic: String? = nil) -> String {
    counted(UInt64(count), "producer") + (topic.map { " of \($0)" } ?? "")
      + (count == 1 ? " is blocked" : " are blocked")
  }

  static func shares(_ minute: UInt16, _ five: UInt16) -> String {
    "blocked \(minute / 10) % of the last minute, \(five / 10) % of the last five"
  }

  static func client(_ subscription: SubscriptionSnapshot) -> String {
    let name = subscription.info.client.isEmpty ? "A client without a name" : subscription.info.client
    let identity = subscription.identity.isEmpty ? "" : " (\(subscription.identity))"
    return "\(name)\(identity) on \(subscription.info.place)"
  }

  static func limit(_ limit: TopicInfo.HoldLimit) -> String {
    switch limit {
    case .demand: "it has requested nothing"
    case .buffer: "its unread records fill the buffer"
    case .replay: "its replay fills the buffer"
    case .groupDemand: "its group has requested nothing"
    case .groupBuffer: "unread records of its group fill the buffer"
    case .groupReplay: "the replay of its group fills the buffer"
    default: "it requests too little"
    }
  }

  static func reason(_ reason: TopicInfo.Publication.WaitReason) -> String {
    switch reason {
    case .storageFull: "the store is full"
    case .storageFailed: "the store fails"
    case .storageBacklog: "records wait to be written to the disk"
    case .memory: "the broker's memory is at its ceiling"
    case .notConnected: "the topic isn't connected"
    case .rate: "their identity publishes at its limit (--identity-publish-records, --identity-publish-bytes)"
    default: "there is no demand"
    }
  }

  /// "The disk is full", or that the limit is reached.
  static func full(_ storage: StoreSnapshot) -> String {
    guard let capacity = storage.capacity else { return "The store is full" }
    return storage.limit.map { capacity >= $0 } ?? false
      ? "The store has reached --storage-limit" : "The disk is full"
  }

  /// "The store is 93 % full: 930 GiB of 1000 GiB."; if the disk is smaller than the limit, also the free space of the disk.
  static func fullness(_ storage: StoreSnapshot) -> String {
    let capacity = storage.capacity ?? 0
    let available = storage.availableBytes ?? 0
    let isDisk = storage.limit.map { capacity < $0 } ?? true
    return "The store is \(storage.percent ?? 0) % full: \(bytes(storage.usedBytes)) of \(bytes(capacity))"
      + (isDisk ? ", and its disk has \(bytes(available)) left." : ".")
  }

  /// The lag of a cursor or group, and the clients that use it.
  static func lag(_ consumer: TopicInfo.Consumer, of topic: String) -> String {
    let kind = consumer.kind == .group ? "Group" : "Cursor"
    return
      "\(kind) \(consumer.name) of \(topic) is \(time(consumer.age)) behind, \(records(consumer.lag)): \(consumer.use(time, records))."
  }

  /// The lag of a subscription, and its cause.
  static func lag(_ subscription: SubscriptionSnapshot, of topic: String) -> String {
    let reason: String
    let info = subscription.info
    if info.slowness == .client {
      reason = "the client hasn't read what it was sent for \(time(info.slow))"
    } else if info.slowness == .network {
      reason = "its network hasn't acknowledged what was sent for \(time(info.slow))"
    } else if subscription.blocked > 0 {
      reason =
        "it hasn't read what it was sent for \(time(subscription.blocked)); the client is slow, or its network"
    } else if subscription.starved > 0 {
      reason = "it has requested nothing for \(time(subscription.starved))"
    } else if subscription.info.state == .replaying {
      reason = "it replays, with demand for more"
    } else {
      reason = "it reads more slowly than records come"
    }
    return
      "\(client(subscription)) is \(time(subscription.age)) behind on \(topic), \(records(subscription.lag)): \(reason)."
  }
}
