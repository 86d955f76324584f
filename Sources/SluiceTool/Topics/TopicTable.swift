import SluiceCommand
import SluiceWire

/// Topics for people.
enum TopicTable {
  static func list(_ topics: [TopicSummary]) -> String {
    guard !topics.isEmpty else { return "" }
    return TextTable.render(
      [["TOPIC", "STATE", "STORAGE", "RECORDS", "FROM", "BYTES", "SUBSCRIBERS", "PRODUCERS"]]
        + topics.map { topic in
          [
            topic.topic, state(topic), storage(topic), "\(topic.records)", "\(topic.firstOffset)",
            ByteSize.rounded(topic.bytes), "\(topic.subscriptions)", "\(topic.publications)",
          ]
        }, leftColumns: 3)
  }

  static func show(_ info: TopicInfo) -> String {
    let summary = info.summary
    var rows = [
      ["topic", summary.topic], ["state", state(summary)], ["epoch", hexadecimal(summary.epoch)],
      [
        "records",
        summary.records == 0
          ? "none kept, \(summary.nextOffset) published"
          : "\(summary.records) kept, offsets \(summary.firstOffset) to \(max(summary.nextOffset, 1) - 1)",
      ],
      ["bytes", ByteSize.rounded(summary.bytes)],
      ["subscribers", "\(summary.subscriptions)"], ["producers", "\(summary.publications)"],
    ]
    rows += TopicOption.all.compactMap { option in option.write(info.settings).map { [option.name, $0] } }
    if case .failure(_, let message) = summary.ending {
      rows.insert(["failure", message], at: 2)
    }
    var text = TextTable.render(rows, leftColumns: 2)
    if !info.subscriptions.isEmpty {
      text += "\n" + subscriptions(info)
    }
    if !info.publications.isEmpty {
      text += "\n" + publications(info)
    }
    return text
  }

  static func state(_ summary: TopicSummary) -> String {
    switch summary.ending {
    case nil: "open"
    case .finished: "finished"
    case .failure: "failed"
    }
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

  /// A time in milliseconds; nothing for 0.
  private static func since(_ milliseconds: UInt64) -> String {
    milliseconds == 0 ? "" : TimeSpan.exact(.milliseconds(Int64(clamping: milliseconds)))
  }

  private static func subscriptions(_ info: TopicInfo) -> String {
    TextTable.render(
      [["SUBSCRIBER", "CONNECTION", "STATE", "NEXT", "BEHIND", "SENT", "GRANTED", "OPEN", "HOLDS UP"]]
        + info.subscriptions.map { subscription in
          [
            subscription.client, "\(subscription.connection)", subscriptionState(subscription),
            "\(subscription.nextOffset)", "\(behind(subscription, info.summary))", "\(subscription.sent)",
            limit(subscription.granted) { "\($0)" },
            limit(subscription.granted) { "\($0 - min($0, subscription.sent))" },
            since(subscription.holding),
          ]
        }, leftColumns: 3)
  }

  static func behind(_ subscription: TopicInfo.Subscription, _ summary: TopicSummary) -> UInt64 {
    summary.nextOffset - min(summary.nextOffset, subscription.nextOffset)
  }

  private static func publications(_ info: TopicInfo) -> String {
    TextTable.render(
      [["PRODUCER", "CONNECTION", "RECEIVED", "GRANTED", "WAITS"]]
        + info.publications.map { publication in
          [
            publication.client, "\(publication.connection)", "\(publication.received)",
            limit(publication.granted) { "\($0)" }, since(publication.waiting),
          ]
        }, leftColumns: 1)
  }
}
