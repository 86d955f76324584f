import SluiceWire

/// Texts about blocked producers of a topic: the cause, the time, and the share of the last minutes.
public enum HoldText {
  /// The limits by which a subscription blocks producers: names for programs, and words for people.
  private static let limits: [TopicInfo.HoldLimit: (name: String, words: String)] = [
    .none: ("", ""), .demand: ("demand", "no demand"),
    .buffer: ("buffer", "its unread records fill the buffer"),
    .replay: ("replay", "its replay fills the buffer"),
    .groupDemand: ("group demand", "no demand from its group"),
    .groupBuffer: ("group buffer", "unread records of its group fill the buffer"),
    .groupReplay: ("group replay", "the replay of its group fills the buffer"),
  ]

  /// The limit by which a subscription blocks producers, as a name for programs; empty for none.
  public static func name(_ limit: TopicInfo.HoldLimit) -> String {
    limits[limit]?.name ?? "limit \(limit.rawValue)"
  }

  /// The same for people; empty for none.
  public static func words(_ limit: TopicInfo.HoldLimit) -> String { limits[limit]?.words ?? name(limit) }

  /// "245 ms", "12 s", "5 min 12 s", "2 h 5 min". Parts of the last unit are dropped.
  public static func time(_ milliseconds: UInt64) -> String {
    let seconds = milliseconds / 1000
    return switch seconds {
    case 0: "\(milliseconds) ms"
    case ..<60: "\(seconds) s"
    case ..<3600: "\(seconds / 60) min \(seconds % 60) s"
    default: "\(seconds / 3600) h \(seconds / 60 % 60) min"
    }
  }

  /// Thousandths in percent: "93 %"; below one percent, "0.4 %".
  public static func share(_ thousandths: UInt16) -> String {
    switch thousandths {
    case 1..<10: "0.\(thousandths) %"
    default: "\(thousandths / 10) %"
    }
  }

  /// "1 record", "1,200 records".
  public static func records(_ count: UInt64) -> String {
    "\(Magnitude.grouped(count)) record\(count == 1 ? "" : "s")"
  }

  /// "orders-ui on connection 3, stream 1 (no demand), for 5 min 12 s, 93 % of the last minute, 71 % of the last five".
  public static func sentence(_ subscription: TopicInfo.Subscription) -> String {
    let name = subscription.client.isEmpty ? "a client without a name" : subscription.client
    let limit = subscription.limit == .none ? "" : " (\(words(subscription.limit)))"
    return "\(name) on \(subscription.place), stream \(subscription.stream)\(limit), "
      + times(subscription.holding, subscription.lastMinute, subscription.lastFiveMinutes)
  }

  /// "storage backlog, for 12 s, 20 % of the last minute, 4 % of the last five".
  public static func sentence(_ hold: TopicInfo.Hold) -> String {
    "\(StorageText.reason(hold.reason)), "
      + times(hold.milliseconds, hold.lastMinute, hold.lastFiveMinutes)
  }

  private static func times(_ milliseconds: UInt64, _ minute: UInt16, _ five: UInt16) -> String {
    "for \(time(milliseconds)), \(share(minute)) of the last minute, \(share(five)) of the last five"
  }
}

extension JSON {
  /// Thousandths, as a part of 1.
  public static func share(_ thousandths: UInt16) -> JSON { .number(Double(thousandths) / 1000, decimals: 3) }
}

/// Texts for the state of a store, and for the cause that blocks a producer.
public enum StorageText {
  public static func state(_ state: StorageStatus.State) -> String {
    switch state {
    case .none: "none"
    case .working: "working"
    case .full: "full"
    case .failing: "failing"
    default: "state \(state.rawValue)"
    }
  }

  /// The reason why a producer has no demand; empty if it isn't known.
  public static func reason(_ reason: TopicInfo.Publication.WaitReason) -> String {
    switch reason {
    case .none: ""
    case .subscribers: "subscribers"
    case .storageFull: "storage full"
    case .storageFailed: "storage fails"
    case .storageBacklog: "storage backlog"
    case .memory: "memory"
    case .notConnected: "not connected"
    case .rate: "rate"
    default: "reason \(reason.rawValue)"
    }
  }
}

extension TopicInfo {
  /// The causes that block the topic's producers now, for `topic show`, `why` and all other texts.
  public struct Limitation {
    /// The blocking subscriptions, the longest block first.
    public var holders: [Subscription]
    /// The other causes, the longest first. Subscribers are among them only if no subscription is named.
    public var causes: [Hold]

    public var isEmpty: Bool { holders.isEmpty && causes.isEmpty }
  }

  public var limitation: Limitation {
    let holders = subscriptions.filter { $0.holding > 0 }.sorted { $0.holding > $1.holding }
    let causes = holds.filter { $0.milliseconds > 0 && ($0.reason != .subscribers || holders.isEmpty) }
    return Limitation(holders: holders, causes: causes.sorted { $0.milliseconds > $1.milliseconds })
  }
}

extension TopicInfo.Subscription {
  /// Records between its position and the end of its topic.
  public func behind(_ summary: TopicSummary) -> UInt64 {
    summary.nextOffset - min(summary.nextOffset, nextOffset)
  }
}

extension Complete.Ending? {
  /// A topic's state in a word.
  public var state: String {
    switch self {
    case nil: "open"
    case .finished: "finished"
    case .failure: "failed"
    }
  }

  /// The topic's failure; nil unless it has failed.
  public var failure: (code: ErrorCode, message: String)? {
    if case .failure(let code, let message) = self { (code, message) } else { nil }
  }
}
