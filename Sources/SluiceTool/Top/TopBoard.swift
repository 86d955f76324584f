import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

/// What the broker said of its topics at one moment.
struct TopSample {
  var time: MonotonicTime
  var topics: [TopicSummary]
  /// Of topics to which somebody is attached.
  var details: [String: TopicInfo] = [:]
}

/// One topic in the table.
struct TopRow: Equatable {
  var topic: String
  var state: String
  /// Records a second that came in, and that went out to the subscribers that are listed.
  var inRate: Double
  var outRate: Double
  var subscribers: UInt32
  var producers: UInt32
  /// How many records subscribers have asked for and not got; nil for no limit.
  var outstanding: UInt64?
  /// Who holds up producers, for how long in milliseconds, and how many producers wait.
  var holder: String?
  var holding: UInt64 = 0
  /// The limit that it holds them up with, and for which shares of the last minute and the last five, in thousandths.
  var limit = TopicInfo.HoldLimit.none
  var lastMinute: UInt16 = 0
  var lastFiveMinutes: UInt16 = 0
  var waiting = 0
  /// Why producers wait, where it isn't for subscribers, and for how long in milliseconds.
  var reason = TopicInfo.Publication.WaitReason.none
  var waited: UInt64 = 0
  /// The store that the topic is in.
  var storage = StorageStatus()
}

/// Makes rows out of what the broker says from time to time. A value: samples in, rows out.
struct TopBoard {
  private struct Before {
    var epoch: UInt64
    var nextOffset: UInt64
    /// What each subscription had been sent, by connection and stream.
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
    let seconds = time.map { (sample.time - $0).seconds } ?? 0
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
      return Self.row(summary, info, now, before[summary.topic], seconds)
    }
    (before, time) = (after, sample.time)
    return rows.sorted { (-$0.inRate - $0.outRate, $0.topic) < (-$1.inRate - $1.outRate, $1.topic) }
  }

  private static func row(
    _ summary: TopicSummary, _ info: TopicInfo?, _ now: Before, _ before: Before?, _ seconds: Double
  ) -> TopRow {
    var row = TopRow(
      topic: summary.topic, state: TopicTable.state(summary), inRate: 0, outRate: 0,
      subscribers: summary.subscriptions, producers: summary.publications, outstanding: 0)
    if let before, before.epoch == now.epoch, seconds > 0 {
      row.inRate = Double(now.nextOffset - min(now.nextOffset, before.nextOffset)) / seconds
      // One that came meanwhile began with nothing.
      let sent = now.sent.reduce(0.0) { $0 + Double($1.value - min($1.value, before.sent[$1.key] ?? 0)) }
      row.outRate = sent / seconds
    }
    guard let info else { return row }
    for subscription in info.subscriptions {
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
  /// Several subscriptions may each ask for nearly all that can be counted.
  fileprivate mutating func add(outstanding more: UInt64) {
    guard let outstanding else { return }
    let sum = outstanding.addingReportingOverflow(more)
    self.outstanding = sum.overflow ? .max : sum.partialValue
  }
}

extension Duration {
  fileprivate var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
