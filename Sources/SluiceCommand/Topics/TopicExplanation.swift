import SluiceWire

/// Sentences that explain what blocks a topic's producers, the demand and backlog of each subscriber, and which groups and durable cursors lag.
///
/// The most important sentence comes first. A value: the same TOPIC_INFO gives the same sentences.
public struct TopicExplanation {
  /// The most producers, the most subscribers, and the most groups and cursors with a sentence of their own.
  public static let described = 5

  public let sentences: [String]

  public init(_ info: TopicInfo) {
    sentences =
      Self.conclusion(info) + Self.described(info.publications.map(Self.sentence), "producers")
      + Self.described(Self.urgent(info).map { Self.sentence($0, of: info.summary) }, "subscribers")
      + Self.described(Self.furthest(info).map { Self.sentence($0, of: info) }, "groups and cursors")
  }

  // MARK: The topic

  /// The state of the topic and of its producers, in one sentence or two.
  private static func conclusion(_ info: TopicInfo) -> [String] {
    let summary = info.summary
    if summary.ending != nil {
      let ending =
        summary.ending.failure.map { "has failed: \($0.message)" } ?? "has completed: no record follows"
      return ["\(summary.topic) \(ending). \(kept(summary))."]
    }
    guard !info.publications.isEmpty else {
      let since = info.withoutProducers > 0 ? " for \(HoldText.time(info.withoutProducers))" : ""
      return ["\(summary.topic) has had no producer\(since), so nothing new comes. \(kept(summary))."]
    }
    let waiting = info.publications.filter { $0.waiting > 0 }
    let limitation = info.limitation
    guard !waiting.isEmpty || !limitation.isEmpty else {
      return [
        summary.subscriptions == 0
          ? "No producer of \(summary.topic) is blocked. The topic has no subscriber."
          : "No producer of \(summary.topic) is blocked."
      ]
    }
    // A limit that comes and goes lets producers publish in between.
    let producers =
      waiting.isEmpty
      ? "Producers of \(summary.topic) are blocked repeatedly"
      : waiting.count == 1
        ? "1 producer of \(summary.topic) is blocked"
        : "\(waiting.count) producers of \(summary.topic) are blocked"
    if let first = limitation.holders.first {
      let others = limitation.holders.count > 1 ? ", and by \(limitation.holders.count - 1) more" : ""
      return [
        "\(producers) by subscriber \(name(first.client, first.place))\(limit(of: first))\(others) "
          + shares(first.lastMinute, first.lastFiveMinutes) + "."
      ]
    }
    if let cause = limitation.causes.first {
      guard cause.reason != .subscribers || summary.subscriptions > 0 else {
        return [
          "\(producers): the topic has no subscriber. Start one, or let producers run ahead: sluice topic set \(summary.topic) --without-subscribers drop"
        ]
      }
      return [
        "\(producers) for \(HoldText.time(cause.milliseconds)): \(reason(cause.reason)) "
          + shares(cause.lastMinute, cause.lastFiveMinutes) + "." + remedy(cause.reason)
      ]
    }
    // Producers that the store has refused aren't attached, so the topic has no cause for them.
    let reasons = Set(waiting.map(\.reason))
    guard reasons.count == 1, let common = reasons.first, common != .none else {
      return ["\(producers), for different reasons."]
    }
    let longest = waiting.map(\.waiting).max() ?? 0
    return ["\(producers) for \(HoldText.time(longest)): \(reason(common)).\(remedy(common))"]
  }

  /// ", which has requested nothing for 12 s".
  private static func limit(of subscriber: TopicInfo.Subscription) -> String {
    let time = "for \(HoldText.time(subscriber.holding))"
    return switch subscriber.limit {
    case .demand: ", which has requested nothing \(time)"
    case .buffer: ", whose unread records have filled the buffer \(time)"
    case .replay: ", whose replay has filled the buffer \(time)"
    case .groupDemand: ", whose group has requested nothing \(time)"
    case .groupBuffer: ", whose group's unread records have filled the buffer \(time)"
    case .groupReplay: ", whose group's replay has filled the buffer \(time)"
    default: " \(time)"
    }
  }

  private static func kept(_ summary: TopicSummary) -> String {
    summary.records == 0 ? "It keeps no record" : "It keeps \(HoldText.records(summary.records))"
  }

  // MARK: Producers

  private static func sentence(_ producer: TopicInfo.Publication) -> String {
    let client = name(producer.client, producer.place)
    guard producer.waiting > 0 else {
      let open = producer.granted - min(producer.granted, producer.received)
      return producer.granted == TopicSettings.unlimited
        ? "Producer \(client) has published \(HoldText.records(producer.received)) and may publish any number."
        : "Producer \(client) has published \(HoldText.records(producer.received)) and may publish \(Magnitude.grouped(open)) more."
    }
    return "Producer \(client) has published \(HoldText.records(producer.received)) and has been blocked for "
      + HoldText.time(producer.waiting) + (producer.reason == .none ? "." : ": \(reason(producer.reason)).")
  }

  // MARK: Subscribers

  /// Subscribers, those that block producers first, then those with the largest backlog.
  private static func urgent(_ info: TopicInfo) -> [TopicInfo.Subscription] {
    info.subscriptions.sorted {
      ($0.holding, $0.behind(info.summary), $1.connection) > (
        $1.holding, $1.behind(info.summary), $0.connection
      )
    }
  }

  private static func sentence(_ subscriber: TopicInfo.Subscription, of summary: TopicSummary) -> String {
    let open =
      subscriber.granted == TopicSettings.unlimited
      ? UInt64.max : subscriber.granted - min(subscriber.granted, subscriber.sent)
    let lag = subscriber.behind(summary)
    let client = "Subscriber \(name(subscriber.client, subscriber.place))"
    let isHolding = subscriber.holding > 0
    let age = subscriber.age > 0 ? ", for \(HoldText.time(subscriber.age))" : ""
    let time = subscriber.slow > 0 ? " for \(HoldText.time(subscriber.slow))" : ""
    let behind = "\(client) is \(HoldText.records(lag)) behind\(age)"
    switch (lag, open) {
    case (0, 0):
      let effect = isHolding ? "the producers are blocked until it does" : "it gets none until it does"
      return "\(client) has every record and has requested no more: \(effect)."
    case (0, .max): return "\(client) has every record and unlimited demand."
    case (0, _):
      return
        "\(client) has every record and has requested \(Magnitude.grouped(open)) more: it waits for the producers."
    // If the client or its network is slow, unread data keeps it from requesting more.
    case (_, 0) where ![.client, .network, .unread].contains(subscriber.slowness):
      return "\(behind) and has requested none of them\(time): it limits itself."
    default:
      let asked =
        open == .max
        ? "has unlimited demand"
        : open == 0 ? "has requested no more" : "has requested \(Magnitude.grouped(min(open, lag))) of them"
      let cause =
        switch subscriber.slowness {
        case .client: "the client hasn't read what it was sent\(time)"
        case .network: "its network hasn't acknowledged what was sent\(time)"
        case .unread: "it hasn't received what it was sent\(time), because the client or its network is slow"
        case .pace: "they are on their way, or it reads more slowly than records come"
        default: "they are on their way, or the client or its network is slow"
        }
      return "\(behind) and \(asked): \(cause)."
    }
  }

  // MARK: Groups and cursors

  /// Groups and cursors with a lag, the largest first.
  private static func furthest(_ info: TopicInfo) -> [TopicInfo.Consumer] {
    info.consumers.filter { $0.lag > 0 }.sorted { ($0.lag, $1.name) > ($1.lag, $0.name) }
  }

  private static func sentence(_ consumer: TopicInfo.Consumer, of info: TopicInfo) -> String {
    let kind = consumer.kind == .group ? "Group" : "Cursor"
    let age = consumer.age == TopicInfo.Consumer.unknown ? "" : ", for \(HoldText.time(consumer.age))"
    let use = uncommitted(consumer, of: info) ?? consumer.use(HoldText.time, HoldText.records)
    return "\(kind) \(consumer.name) is \(HoldText.records(consumer.lag)) behind\(age): \(use)."
  }

  /// The sent records that a cursor's subscriber hasn't committed; nil if the cursor is at the next record to send.
  private static func uncommitted(_ consumer: TopicInfo.Consumer, of info: TopicInfo) -> String? {
    guard consumer.kind == .cursor,
      let subscriber = info.subscriptions.first(where: { $0.consumer == consumer.name }),
      subscriber.nextOffset > consumer.nextOffset
    else { return nil }
    return subscriber.behind(info.summary) == 0
      ? "its subscriber was sent them, and hasn't committed them"
      : "its subscriber was sent those before offset \(subscriber.nextOffset), and hasn't committed them"
  }

  // MARK: Words

  private static func reason(_ reason: TopicInfo.Publication.WaitReason) -> String {
    switch reason {
    case .subscribers: "the subscribers have requested nothing more"
    case .storageFull: "the broker's store is full"
    case .storageFailed: "the broker's store reports errors"
    case .storageBacklog: "records wait to be written to the broker's disk"
    case .memory: "the broker's memory is at its ceiling"
    case .notConnected: "the topic isn't connected"
    case .rate: "its identity publishes at its limit (--identity-publish-records, --identity-publish-bytes)"
    default: "reason \(reason.rawValue), which this version doesn't know"
    }
  }

  /// The remedy as a sentence with a space in front; empty for a cause that ends by itself.
  private static func remedy(_ reason: TopicInfo.Publication.WaitReason) -> String {
    switch reason {
    case .storageFull: " Delete or trim topics, or raise --storage-limit."
    case .memory: " Delete or trim topics in memory, or raise --memory."
    default: ""
    }
  }

  private static func described(_ sentences: [String], _ kind: String) -> [String] {
    guard sentences.count > described else { return sentences }
    return sentences.prefix(described) + ["\(sentences.count - described) more \(kind) aren't listed."]
  }

  private static func name(_ client: String, _ place: String) -> String {
    "\(client.isEmpty ? "without a name" : client) (\(place))"
  }

  private static func shares(_ minute: UInt16, _ five: UInt16) -> String {
    "(blocked \(HoldText.share(minute)) of the last minute, \(HoldText.share(five)) of the last five)"
  }
}
