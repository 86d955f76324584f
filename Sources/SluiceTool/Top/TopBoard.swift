import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

/// The broker's topics at one moment.
struct TopSample {
  var time: MonotonicTime
  var topics: [TopicSummary]
  /// Details of topics with attached clients or records.
  var details: [String: TopicInfo] = [:]
  /// Topics that may have a lag, but whose details weren't requested, because there are too many.
  var unasked: Set<String> = []
}

/// One topic in the table.
struct TopRow: Equatable {
  var topic: String
  var state: String
  /// Records per second that were published, and that were sent to the listed subscribers.
  var inRate: Double
  var outRate: Double
  var subscribers: UInt32
  var producers: UInt32
  /// Records that subscribers have requested and not received; nil for unlimited demand.
  var outstanding: UInt64?
  /// The subscriber that blocks producers, and for how long, in milliseconds.
  var holder: String?
  var holding: UInt64 = 0
  /// The limit by which it blocks them, and its shares of the last minute and the last five, in thousandths.
  var limit = TopicInfo.HoldLimit.none
  var lastMinute: UInt16 = 0
  var lastFiveMinutes: UInt16 = 0
  /// How many producers are blocked.
  var waiting = 0
  /// The reason why producers are blocked, if it isn't a subscriber, and for how long, in milliseconds.
  var reason = TopicInfo.Publication.WaitReason.none
  var waited: UInt64 = 0
  /// The state of the topic's store.
  var storage = StorageStatus()
  /// The largest backlog of a subscriber, durable cursor or group, in records.
  var lag: UInt64 = 0
  /// The age of the oldest record in a backlog, in milliseconds.
  var lagAge: UInt64 = 0
  /// Whether the topic's lag is known. It isn't if there are too many topics to request the details of each.
  var isMeasured = true
}

/// Computes rows from samples of the broker. A value type: samples in, rows out.
struct TopBoard {
  private struct Before {
    var epoch: UInt64
    var nextOffset: UInt64
    /// Records sent by subscription.
    var sent: [SubscriptionKey: UInt64]
  }

  private struct SubscriptionKey: Hashable {
    var connection: UInt64
    var stream: UInt32
  }

  private var time: MonotonicTime?
  private var before: [String: Before] = [:]

  /// The topics, the busiest first. Rates are 0 in the first sample.
  mutating func take(_ sample: TopSample) -> [TopRow] {
    let seconds = time.map { (sample.time - $0).inSeconds } ?? 0
    var after: [String: Before] = [:]
    let rows = sample.topics.map { summary in
      let info = sample.details[summary.topic]
      let now = Before(
        epoch: summary.epoch, nextOffset: summary.nextOffset,
        sent: Dictionary(
          (info?.subscriptions ?? []).map {
            (SubscriptionKey(connection: $0.connection, stream: $0.stream), $0.sent)
          }, uniquingKeysWith: max))
      after[summary.topic] = now
      var row = Self.row(summary, info, now, before[summary.topic], seconds)
      row.isMeasured = !sample.unasked.contains(summary.topic)
      return row
    }
    (before, time) = (after, sample.time)
    return rows.sorted { (-$0.inRate - $0.outRate, $0.topic) < (-$1.inRate - $1.outRate, $1.topic) }
  }

  private static func row(
    _ summary: TopicSummary, _ info: TopicInfo?, _ now: Before, _ before: Before?, _ seconds: Double
  ) -> TopRow {
    var row = TopRow(
      topic: summary.topic, state: summary.ending.state, inRate: 0, outRate: 0,
      subscribers: summary.subscriptions, producers: summary.publications, outstanding: 0)
    if let before, before.epoch == now.epoch, seconds > 0 {
      row.inRate = Double(now.nextOffset - min(now.nextOffset, before.nextOffset)) / seconds
      // A subscription that was opened meanwhile began at 0.
      let sent = now.sent.reduce(0.0) { $0 + Double($1.value - min($1.value, before.sent[$1.key] ?? 0)) }
      row.outRate = sent / seconds
    }
    guard let info else { return row }
    for consumer in info.consumers where consumer.lag > 0 {
      row.lag = max(row.lag, consumer.lag)
      if consumer.age != TopicInfo.Consumer.unknown { row.lagAge = max(row.lagAge, consumer.age) }
    }
    for subscription in info.subscriptions {
      row.lag = max(row.lag, subscription.behind(summary))
      row.lagAge = max(row.lagAge, subscription.age)
      if subscription.granted == .max {
        row.outstanding = nil
      } else {
        row.add(outstanding: subscription.granted - min(subscription.granted, subscription.sent))
      }
      if subscription.holding > row.holding {
        (row.holder, row.holding, row.limit) = (subscription.client, subscription.holding, subscription.limit)
        (row.lastMinute, row.lastFiveMinutes) = (subscription.lastMinute, subscription.lastFiveMinutes)
      }
    }
    row.waiting = info.publications.count { $0.waiting > 0 }
    let others = info.publications.filter {
      $0.waiting > 0 && $0.reason != .none && $0.reason != .subscribers
    }
    if let longest = others.max(by: { $0.waiting < $1.waiting }) {
      (row.reason, row.waited) = (longest.reason, longest.waiting)
    }
    row.storage = info.storage
    return row
  }
}

extension TopRow {
  /// Adds demand without overflow: several subscriptions may each request nearly `UInt64.max` records.
  fileprivate mutating func add(outstanding more: UInt64) {
    guard let outstanding else { return }
    let sum = outstanding.addingReportingOverflow(more)
    self.outstanding = sum.overflow ? .max : sum.partialValue
  }
}

/// The rows of `sluice top` as text.
enum TopTable {
  /// The table for an output that isn't a terminal; see ``TopScreen`` for terminals.
  static func render(_ rows: [TopRow], title: String) -> String {
    title + "\n"
      + TextTable.render(
        [
          [
            "TOPIC", "STATE", "IN/S", "OUT/S", "LAG", "SUBSCRIBERS", "PRODUCERS", "REQUESTED", "BLOCKED BY",
          ]
        ] + rows.map(cells), leftColumns: 2)
  }

  /// - Parameters:
  ///   - node: the broker's name in its cluster; nil for a single-node broker, and without the permission to see it.
  ///   - commits: the mean time of the node's recent commits in the engine, in microseconds; nil without commits.
  static func title(
    _ rows: [TopRow], server: String, node: String? = nil, commits: UInt64? = nil
  ) -> String {
    let storage = rows.first { $0.storage.state != .none }.flatMap { TopicTable.storage($0.storage) }
    return traffic(rows, of: "\(node.map { "node \($0) at " } ?? "")\(server)")
      + (storage.map { "; store: \($0)" } ?? "")
      + (commits.map { "; commits: \(Magnitude.fixed(Double($0) / 1000, decimals: 1)) ms" } ?? "")
  }

  /// Shorter titles for narrow screens, the longest first.
  static func shortTitles(_ rows: [TopRow], node: String? = nil) -> [String] {
    let store = rows.first { $0.storage.state != .none }?.storage
    let name = node.map { "node \($0)" }
    let full = store.flatMap(TopicTable.storage).map { "store: \($0)" }
    let share = store?.percent.map { "store \($0) % full" }
    return [full, share].map { store in
      traffic(rows, of: name) + (store.map { "; \($0)" } ?? "")
    }
  }

  private static func traffic(_ rows: [TopRow], of place: String?) -> String {
    let (received, sent) = rows.reduce((0.0, 0.0)) { ($0.0 + $1.inRate, $0.1 + $1.outRate) }
    let start = place.map { "\($0): " } ?? ""
    let measured = rows.count { $0.isMeasured }
    let lag = measured < rows.count ? " (lag of \(Magnitude.grouped(UInt64(measured))) known)" : ""
    return
      "\(start)\(Magnitude.grouped(UInt64(rows.count))) topic\(rows.count == 1 ? "" : "s")\(lag), in \(rate(received))/s, out \(rate(sent))/s"
  }

  static func line(_ row: TopRow) -> String {
    let store = row.storage.state == .none ? nil : row.storage
    let json: JSON = [
      "topic": .text(row.topic), "state": .text(row.state),
      "in_per_second": .number(row.inRate, decimals: 1), "out_per_second": .number(row.outRate, decimals: 1),
      "subscribers": .number(row.subscribers), "producers": .number(row.producers),
      "outstanding": .number(row.outstanding), "holder": .text(row.holder ?? ""),
      "holding_ms": .number(row.holding), "holding_limit": .text(HoldText.name(row.limit)),
      "held_last_minute": .share(row.lastMinute), "held_last_five_minutes": .share(row.lastFiveMinutes),
      "waiting_producers": .number(row.waiting), "wait_reason": .text(StorageText.reason(row.reason)),
      "store_state": store.map { .text(StorageText.state($0.state)) },
      "store_used_bytes": store.map { .number($0.used) }, "store_limit_bytes": store.map { .limit($0.limit) },
      "lag": row.isMeasured ? .number(row.lag) : .null,
      "lag_ms": row.isMeasured ? .number(row.lagAge) : .null,
    ]
    return json.line
  }

  private static func cells(_ row: TopRow) -> [String] {
    [
      row.topic, row.state, rate(row.inRate), rate(row.outRate),
      row.isMeasured ? "\(row.lag)" : unknown, "\(row.subscribers)",
      "\(row.producers)",
      row.outstanding.map { "\($0)" } ?? "unlimited", held(row),
    ]
  }

  /// "worker[7] for 1 min 5 s, no demand, 93 % of the last minute (2 blocked)"
  static func held(_ row: TopRow) -> String {
    let waiting = "(\(row.waiting) blocked)"
    if row.waited > 0 {
      return "\(StorageText.reason(row.reason)) for \(HoldText.time(row.waited)) \(waiting)"
    }
    guard let holder = row.holder, row.holding > 0 else { return "" }
    let limit = row.limit == .none ? "" : ", \(HoldText.words(row.limit))"
    return
      "\(holder) for \(HoldText.time(row.holding))\(limit), \(HoldText.share(row.lastMinute)) of the last minute \(waiting)"
  }

  /// The text for an unknown lag.
  static let unknown = "?"

  /// A topic's lag on a terminal; empty for 0.
  static func lag(_ row: TopRow) -> String {
    guard row.isMeasured else { return unknown }
    return row.lag == 0 ? "" : Magnitude.grouped(row.lag)
  }

  static func rate(_ rate: Double) -> String {
    // Clamped, because a broker may report any offsets.
    Magnitude.grouped(UInt64(min(max(rate, 0), 1e18).rounded()))
  }
}
