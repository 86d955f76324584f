import SluiceWire

/// The request of a subscription to the broker: the topic, the start, and its options.
///
/// ``Client/topic(_:settings:from:where:cursor:lag:prefetch:)`` makes one of its parameters; as a value it can be kept, changed, and used for several
/// publishers.
///
/// ```swift
/// var plan = SubscriptionPlan("orders.eu")
/// plan.start = .last(100)
/// let orders = client.topic(plan)
/// ```
public struct SubscriptionPlan: Hashable, Sendable {
  /// Where a subscription begins.
  public enum Start: Hashable, Sendable {
    /// At the records that the topic keeps for late subscribers, then live.
    case replay
    /// At the oldest record.
    case earliest
    /// At the next record to be published.
    case new
    /// That many records before the end, or at the oldest record.
    case last(UInt64)
    /// At that offset. If it was dropped, the subscription begins with a lag; if it is in the future, the subscription waits for it.
    case offset(UInt64)
    /// At the first record that isn't older than this, in milliseconds since 1970; if all are older, at the next one.
    case time(Timestamp)

    /// Whether it is a place in the topic's records, rather than relative to their end.
    var isPosition: Bool {
      switch self {
      case .earliest, .offset, .time: true
      case .replay, .new, .last: false
      }
    }
  }

  /// The behaviour when the topic drops records before the subscriber requests them.
  ///
  /// It doesn't apply when the broker has lost records of a durable topic in a crash: the subscription then continues with the records that are
  /// left, and misses none of them, see ``TopicEvent/rewound(nextOffset:)``.
  public enum Lag: Hashable, Sendable {
    /// Continues with the oldest record. ``RemoteTopic/events`` and ``Client/notices`` report how many were missed. A topic that was started anew while there was
    /// no connection is received from its beginning, with new offsets.
    case skip
    /// Ends with ``ClientError/Code/lagged``, or with ``ClientError/Code/epochChanged`` if the topic was started anew.
    case fail
  }

  /// How far the client requests ahead of the subscriber.
  public enum Prefetch: Hashable, Sendable {
    /// Not at all: the broker may send exactly what the subscriber requested.
    case byRequest
    /// The client requests that many records more than the subscriber has received, and keeps them until the subscriber requests them. Hides
    /// the network's latency from a subscriber that requests few records at a time.
    case keepFull(Int)
  }

  /// A durable cursor: a named position in the topic that the broker stores. A subscription begins where the last one with this cursor has
  /// committed.
  ///
  /// One subscription at a time uses it: when another begins, the earlier one ends with ``ClientError/Code/cursorTaken``. When a client moves or
  /// deletes it, the subscription ends with ``ClientError/Code/cursorMoved`` or ``ClientError/Code/cursorDeleted``.
  ///
  /// Every record is delivered at least once: records that were delivered and not committed are delivered again to the next subscription. Records
  /// that the topic drops meanwhile, by its own limits, are a ``Lag``.
  public struct Cursor: Hashable, Sendable, ExpressibleByStringLiteral {
    /// When records are committed.
    public enum Commit: Hashable, Sendable {
      /// As soon as the subscriber has returned from receiving them. A subscriber that only passes them on, to another thread or an
      /// asynchronous sequence, commits manually.
      case automatic
      /// By ``TopicRecord/commit()``.
      case manual
    }

    /// With the rules of a topic's name.
    public var name: String
    public var commit: Commit

    public init(_ name: String, commit: Commit = .automatic) {
      self.name = name
      self.commit = commit
    }

    public init(stringLiteral name: String) {
      self.init(name)
    }
  }

  /// Tokens separated by dots: `orders.eu.new`. A subscription to an invalid name fails with a description of the error. If ``isPattern``, a token may be
  /// `*`, for any one, and the last `>`, for one or more.
  public var topic: String

  /// Whether the subscription is to all topics that match ``topic``, including those created later. Default: false.
  public var isPattern = false

  /// Where subscriptions begin, unless the broker knows their ``cursor``. Default: at the records that the topic keeps for late subscribers.
  public var start: Start

  /// Which records are received. The broker sends no others, and these use no demand. Default: all.
  public var filter: RecordFilter

  /// The durable cursor that keeps the position. Default: none.
  public var cursor: Cursor?

  /// The behaviour when records are dropped before the subscriber requests them, or the topic is started anew during an outage, as topics in memory are when
  /// their broker is restarted. Default: nil.
  ///
  /// With nil, the topic's settings apply to dropped records. A topic that was started anew is received from its beginning, as with ``Lag/skip``, with one
  /// exception. A subscriber ends with ``ClientError/Code/epochChanged`` if it gets records only, has begun at a position (``Start/earliest``,
  /// ``Start/offset(_:)``, ``Start/time(_:)``) and has got some: its results from these records wouldn't fit those that follow. Subscribing again begins with
  /// the new ones. ``RemoteTopic/events`` and ``Client/notices`` report every such break.
  /// Subscriptions to patterns and members of groups continue in any case.
  public var lag: Lag?

  /// How far the client requests ahead. Default: not at all.
  public var prefetch: Prefetch

  /// The behaviour when a subscription begins, or continues after a lost connection, and the topic doesn't exist.
  public enum IfMissing: Hashable, Sendable {
    /// The broker creates the topic, and the subscription waits for records.
    case create
    /// The subscription ends with ``ClientError/Code/unknownTopic``.
    case fail
  }

  /// The behaviour if the topic doesn't exist. Default: the topic is created. Without effect for patterns, which create no topics.

  public var ifMissing = IfMissing.create
  /// The settings stated for the topic. Default: nil, for none. See ``Client/topic(_:settings:from:where:cursor:lag:prefetch:)``. Without effect with ``isPattern``.
  public var settings: TopicSettings?

  /// The group that subscriptions join, if any; see ``Client/group(_:of:options:from:prefetch:)``.
  var membership: Membership?

  public init(
    _ topic: String, settings: TopicSettings? = nil, from start: Start = .replay,
    where filter: RecordFilter = .all, cursor: Cursor? = nil, lag: Lag? = nil, prefetch: Prefetch = .byRequest
  ) {
    self.topic = topic
    self.settings = settings
    self.start = start
    self.filter = filter
    self.cursor = cursor
    self.lag = lag
    self.prefetch = prefetch
  }
}

extension SubscriptionPlan {
  /// Whether it subscribes to a pattern. A group is one topic's.
  var hasPattern: Bool { isPattern && membership == nil }

  /// Why no subscription can be opened with this plan; nil if one can.
  var invalidity: ClientError? {
    if let error = ClientError.invalid(topic: topic, isPattern: hasPattern) { return error }
    do throws(ClientError) {
      try filter.validate()
    } catch {
      return error
    }
    return cursor.flatMap { ClientError.invalid(cursor: $0.name, of: topic) }
  }
}

extension ClientError {
  /// Why a topic name or pattern is invalid; nil if it is valid.
  static func invalid(topic: String, isPattern: Bool = false) -> ClientError? {
    do throws(WireError) {
      if isPattern { _ = try TopicPattern(topic) } else { try TopicName.validate(topic) }
      return nil
    } catch {
      return ClientError(error, topic: topic)
    }
  }

  fileprivate static func invalid(cursor: String, of topic: String) -> ClientError? {
    do throws(WireError) {
      try TopicName.validate(cursor, as: "cursor")
      return nil
    } catch {
      return ClientError(error, topic: topic)
    }
  }
}

extension Subscribe.Start {
  init(_ start: SubscriptionPlan.Start) {
    self =
      switch start {
      case .replay: .replay
      case .earliest: .earliest
      case .new: .new
      case .last(let count): .last(count)
      case .offset(let offset): .offset(offset)
      case .time(let time): .time(time.millisecondsSince1970)
      }
  }
}

extension Subscribe.LagPolicy {
  /// - Returns: nil if the topic's settings apply.
  init?(_ lag: SubscriptionPlan.Lag?) {
    guard let lag else { return nil }
    self = lag == .skip ? .skip : .fail
  }
}

extension Subscribe.IfMissing {
  init(_ ifMissing: SubscriptionPlan.IfMissing) {
    self = ifMissing == .create ? .create : .fail
  }
}
