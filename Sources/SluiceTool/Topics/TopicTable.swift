import SluiceCommand
import SluiceMQTT
import SluiceWire

/// Topics for people.
enum TopicTable {
  static func list(_ topics: [TopicSummary]) -> String {
    guard !topics.isEmpty else { return "" }
    return TextTable.render(
      [["TOPIC", "STATE", "STORAGE", "RECORDS", "FROM", "BYTES", "SUBSCRIBERS", "PRODUCERS"]]
        + topics.map { topic in
          [
            topic.topic, topic.ending.state, storage(topic), "\(topic.records)", "\(topic.firstOffset)",
            ByteSize.rounded(topic.bytes), "\(topic.subscriptions)", "\(topic.publications)",
          ]
        }, leftColumns: 3)
  }

  static func show(_ info: TopicInfo) -> String {
    let summary = info.summary
    var rows = [["topic", summary.topic], ["state", summary.ending.state]]
    if let name = MQTTTopicName.escapedName(ofBroker: summary.topic) { rows.append(["in MQTT", name]) }
    if let failure = summary.ending.failure { rows.append(["failure", failure.message]) }
    rows += holders(info).map { ["blocked by", $0] }
    rows += [
      ["epoch", hexadecimal(summary.epoch)],
      [
        "records",
        summary.records == 0
          ? "none kept, \(summary.nextOffset) published"
          : "\(summary.records) kept, offsets \(summary.firstOffset) to \(max(summary.nextOffset, 1) - 1)",
      ],
      ["bytes", ByteSize.rounded(summary.bytes)], ["dropped", dropped(info)],
      ["subscribers", "\(summary.subscriptions)"], ["producers", producers(info)],
      ["settings", info.isStated ? "stated by a client" : "the broker's defaults"],
    ]
    rows += TopicOption.written(info.settings).map { [$0.name, $0.value] }
    if let storage = storage(info.storage) { rows.append(["store", storage]) }
    var text = TextTable.render(rows, leftColumns: 2)
    if !info.subscriptions.isEmpty {
      text += "\n" + subscriptions(info)
    }
    if !info.publications.isEmpty {
      text += "\n" + publications(info)
    }
    if !info.consumers.isEmpty { text += "\n" + consumers(info) }
    return text
  }

  /// The most subscribers described in sentences; the table has all.
  private static let describedHolders = 3

  /// A sentence for each cause that blocks producers now.
  private static func holders(_ info: TopicInfo) -> [String] {
    let limitation = info.limitation
    let holders = limitation.holders
    var sentences = holders.prefix(describedHolders).map { HoldText.sentence($0) }
    if holders.count > describedHolders { sentences.append("and \(holders.count - describedHolders) more") }
    return sentences
      + limitation.causes.map { hold in
        let isAlone = hold.reason == .subscribers && info.summary.subscriptions == 0
        return (isAlone ? "lack of " : "") + HoldText.sentence(hold)
      }
  }

  /// The dropped records, by cause. For a durable topic also an uncounted rest: records that were dropped before the broker's start, and trimmed ones that are
  /// still in the store.
  private static func dropped(_ info: TopicInfo) -> String {
    var parts = DroppedRecords.Cause.allCases.compactMap { cause -> String? in
      let amount = info.dropped[cause]
      guard amount.records > 0 else { return nil }
      return "\(HoldText.records(amount.records)), \(ByteSize.rounded(amount.bytes)), by \(cause.name)"
    }
    let gone = info.summary.firstOffset
    let counted = info.dropped.total.records
    // In a compact topic, most offsets before the first are of replaced records.
    if info.summary.storage == .durable, info.settings.compact != true, gone > counted,
      info.settings.replayRecords == TopicSettings.unlimited
    {
      let rest = HoldText.records(gone - counted)
      parts.append("\(rest) before the broker started, or trimmed and not freed yet")
    }
    return parts.isEmpty ? "none" : parts.joined(separator: "; ")
  }

  /// The store's state; nil for a topic in memory.
  static func storage(_ storage: StorageStatus) -> String? {
    guard storage.state != .none else { return nil }
    let used = ByteSize.rounded(storage.used)
    let size =
      storage.percent.map { percent in
        "\(used) of \(ByteSize.rounded(storage.limit)) used (\(percent) %)"
      } ?? "\(used) used"
    switch storage.state {
    case .working: return size
    case .full: return "full for \(since(storage.since)), producers blocked; \(size)"
    case .failing: return "failing for \(since(storage.since)), producers blocked; \(size)"
    default: return "\(StorageText.state(storage.state)); \(size)"
    }
  }

  private static func producers(_ info: TopicInfo) -> String {
    guard info.withoutProducers > 0 else { return "\(info.summary.publications)" }
    return "none for \(since(info.withoutProducers))"
  }

  static func storage(_ summary: TopicSummary) -> String {
    switch summary.storage {
    case .memory: "memory"
    case .durable: "durable"
    }
  }

  static func subscriptionState(_ subscription: TopicInfo.Subscription) -> String {
    switch subscription.state {
    case .replaying: "replaying"
    case .live: "live"
    default: "state \(subscription.state.rawValue)"
    }
  }

  static func limit(_ value: UInt64, _ write: (UInt64) -> String) -> String {
    value == TopicSettings.unlimited ? "unlimited" : write(value)
  }

  static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// A time in milliseconds as text; empty for 0.
  private static func since(_ milliseconds: UInt64) -> String {
    milliseconds == 0 ? "" : TimeSpan.rounded(.milliseconds(Int64(clamping: milliseconds)))
  }

  private static func subscriptions(_ info: TopicInfo) -> String {
    TextTable.render(
      [
        [
          "SUBSCRIBER", "CONNECTION", "STATE", "NEXT", "BEHIND", "SENT", "GRANTED", "OPEN", "BLOCKING",
          "1 MIN", "5 MIN", "BEHIND FOR", "CAUSE",
        ]
      ]
        + info.subscriptions.map { subscription in
          [
            subscription.client, connection(subscription.connection, subscription.node),
            subscriptionState(subscription),
            "\(subscription.nextOffset)", "\(subscription.behind(info.summary))", "\(subscription.sent)",
            limit(subscription.granted) { "\($0)" },
            limit(subscription.granted) { "\($0 - min($0, subscription.sent))" },
            subscription.holding == 0 ? "" : HoldText.time(subscription.holding),
            share(subscription.lastMinute), share(subscription.lastFiveMinutes),
            subscription.age == 0 ? "" : HoldText.time(subscription.age),
            SlownessText.cause(of: subscription),
          ]
        }, leftColumns: 3)
  }

  /// "18"; "18 of b2" for a connection of another node.
  private static func connection(_ number: UInt64, _ node: String) -> String {
    node.isEmpty ? "\(number)" : "\(number) of \(node)"
  }

  /// Empty for 0.
  private static func share(_ thousandths: UInt16) -> String {
    thousandths == 0 ? "" : HoldText.share(thousandths)
  }

  /// The cursors and groups with the largest lag.
  private static func consumers(_ info: TopicInfo) -> String {
    let table = TextTable.render(
      [
        [
          "CONSUMER", "KIND", "NEXT", "BEHIND", "BYTES", "BEHIND FOR", "MEMBERS", "UNACKED", "DELAYED",
          "REDELIVERED", "DEAD LETTERS",
        ]
      ]
        + info.consumers.map { consumer in
          let isGroup = consumer.kind == .group
          return [
            consumer.name, isGroup ? "group" : "cursor", "\(consumer.nextOffset)", "\(consumer.lag)",
            consumer.bytes == TopicInfo.Consumer.unknown ? "?" : ByteSize.rounded(consumer.bytes),
            age(consumer), "\(consumer.members)", isGroup ? "\(consumer.unacknowledged)" : "",
            isGroup ? "\(consumer.delayed)" : "",
            isGroup ? "\(consumer.redeliveries)" : "", isGroup ? "\(consumer.deadLetters)" : "",
          ]
        }, leftColumns: 2)
    let rest = Int(info.consumerCount) - info.consumers.count
    return table
      + (rest > 0 ? "\(rest) more with a smaller lag: sluice cursor list \(info.summary.topic)\n" : "")
  }

  /// The age of the next record of a cursor or group; empty without lag.
  static func age(_ consumer: TopicInfo.Consumer) -> String {
    switch consumer.age {
    case TopicInfo.Consumer.unknown: "?"
    case _ where consumer.lag == 0: ""
    default: HoldText.time(consumer.age)
    }
  }

  private static func publications(_ info: TopicInfo) -> String {
    TextTable.render(
      [["PRODUCER", "CONNECTION", "RECEIVED", "GRANTED", "BLOCKED", "BY"]]
        + info.publications.map { publication in
          [
            publication.client, connection(publication.connection, publication.node),
            "\(publication.received)",
            limit(publication.granted) { "\($0)" }, since(publication.waiting),
            publication.waiting == 0 ? "" : StorageText.reason(publication.reason),
          ]
        }, leftColumns: 1)
  }
}
