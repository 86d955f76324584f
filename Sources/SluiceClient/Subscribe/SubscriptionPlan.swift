import SluiceWire

/// What a subscription asks of the broker: which topic, from where, and how.
///
/// ``Client/topic(_:as:from:where:cursor:lag:prefetch:)`` makes one of its parameters; as a value it can be kept, changed and used for several
/// topics' publishers.
///
/// ```swift
/// var plan = SubscriptionPlan("orders.eu")
/// plan.start = .last(100)
/// let orders = client.topic(plan)
/// ```
public struct SubscriptionPlan: Hashable, Sendable {
  /// Where a subscription begins.
  public enum Start: Hashable, Sendable {
    /// At what the topic keeps for late subscribers, then live.
    case replay
    /// At the oldest record that there is.
    case earliest
    /// At the next record to be published.
    case new
    /// That many records before the end, or as many as there are.
    case last(UInt64)
    /// At that offset. If it is gone, the subscription lags from its start; if it isn't there yet, it is waited for.
    case offset(UInt64)
    /// At the first record that isn't older than this, in milliseconds since 1970; when all are older, at the next one.
    case time(Int64)
  }

  /// What happens when the topic drops records before the subscriber asked for them.
  ///
  /// Not what happens when the broker itself has lost records of a durable topic in a crash: the subscription goes on with what is there, and misses nothing
  /// of it, see ``TopicEvent/rewound(nextOffset:)``.
  public enum Lag: Hashable, Sendable {
    /// Goes on with the oldest there is. ``RemoteTopic/events`` tells how many were missed. A topic that was started anew while there was
    /// no connection is received from its beginning, with other offsets.
    case skip
    /// Ends with ``ClientError/Code/lagged``, or with ``ClientError/Code/epochChanged`` when the topic was started anew.
    case fail
  }

  /// How far the client asks ahead of the subscriber.
  public enum Prefetch: Hashable, Sendable {
    /// Not at all: the broker may send exactly what the subscriber requested.
    case byRequest
    /// The client asks for so many records more than the subscriber has got, and keeps them until it requests them. Hides the
    /// network's delay from a subscriber that requests little at a time.
    case keepFull(Int)
  }

  /// A durable cursor: a named place in the topic that lives in the broker and survives the client. A subscription begins where the last one that
  /// named it had come to.
  ///
  /// One subscription at a time uses it: when another begins, the earlier one ends with ``ClientError/Code/cursorTaken``. When somebody moves or deletes
  /// it, the subscription ends with ``ClientError/Code/cursorMoved`` or ``ClientError/Code/cursorDeleted``.
  ///
  /// Every record is delivered at least once: what was delivered and not committed is delivered again to the next subscription. What the topic drops
  /// meanwhile, by its own limits, is told as ``Lag``.
  public struct Cursor: Hashable, Sendable, ExpressibleByStringLiteral {
    /// When records count as dealt with.
    public enum Commit: Hashable, Sendable {
      /// As soon as the subscriber has returned from receiving them. Whoever only passes them on there, to another thread or an asynchronous
      /// sequence, and works on them later, commits by hand.
      case automatic
      /// When ``TopicRecord/commit()`` says so.
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

  /// Tokens separated by dots: `orders.eu.new`. What is wrong with it is told to the subscriber. If ``isPattern``, a token may be `*`, for any
  /// one, and the last `>`, for one or more.
  public var topic: String

  /// Whether the subscription is to all topics that match ``topic``, those created later included. Default: false.
  public var isPattern = false

  /// Where subscriptions begin. Default: at what the topic keeps for late subscribers. With a ``cursor`` that the broker knows: there.
  public var start: Start

  /// Which records are wanted. The broker sends no others, and they cost no demand. Default: all.
  public var filter: RecordFilter

  /// The durable cursor that keeps the place. Default: none.
  public var cursor: Cursor?

  /// What happens when records are dropped that the subscriber hasn't asked for yet. Default: nil, for what the topic's settings say, and
  /// for ``Lag/skip`` when the topic was started anew during an outage.
  public var lag: Lag?

  /// How far the client asks ahead. Default: not at all.
  public var prefetch: Prefetch

  /// What happens when a subscription begins, or goes on after a lost connection, and there is no topic of that name.
  public enum IfMissing: Hashable, Sendable {
    /// The broker creates the topic, and the subscription waits for what is published.
    case create
    /// The subscription ends with ``ClientError/Code/unknownTopic``.
    case fail
  }

  /// What happens when there is no such topic. Default: it is created. Of no meaning for patterns, which create nothing.
  public var ifMissing = IfMissing.create
  /// What is stated of the topic. Default: nil, for nothing. See ``Client/topic(_:as:from:where:cursor:lag:prefetch:)``. Of no effect with ``isPattern``.
  public var settings: TopicSettings?

  /// The group that subscriptions are members of, if they are; see ``Client/group(_:of:options:from:prefetch:)``.
  var membership: Membership?

  public init(
    _ topic: String, as settings: TopicSettings? = nil, from start: Start = .replay,
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

  /// Why no subscription can be opened with this plan, if so.
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
  /// Why a topic can't have this name, or a pattern can't be this, if so.
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
      case .time(let time): .time(time)
      }
  }
}

extension Subscribe.LagPolicy {
  /// - Returns: nil for what the topic's settings say.
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
