import SluiceWire

/// Who holds up a topic's producers, of the subscriptions that may: nobody while no producer waits, else the ones that have asked for
/// least, and those that have taken least. None for longer than a producer has been waiting.
struct ProducerHolders: Sendable {
  /// The longest that a producer has been waiting, in milliseconds.
  private(set) var waiting: UInt64 = 0
  private var leastAsked = UInt64.max
  private var leastTaken = UInt64.max

  /// A producer that has been waiting for so long, in milliseconds.
  mutating func add(waiting time: UInt64) {
    waiting = max(waiting, time)
  }

  /// A subscription that may hold up producers.
  mutating func add(askedThrough: UInt64, nextOffset: UInt64) {
    leastAsked = min(leastAsked, askedThrough)
    leastTaken = min(leastTaken, nextOffset)
  }

  mutating func add(_ others: ProducerHolders) {
    waiting = max(waiting, others.waiting)
    leastAsked = min(leastAsked, others.leastAsked)
    leastTaken = min(leastTaken, others.leastTaken)
  }

  /// Whether a subscription that may hold up producers does, as far as these know.
  func hold(askedThrough: UInt64, nextOffset: UInt64) -> Bool {
    waiting > 0 && (askedThrough == leastAsked || nextOffset == leastTaken)
  }

  func hold(_ standing: Consumer.Standing) -> Bool {
    hold(askedThrough: standing.askedThrough, nextOffset: standing.nextOffset)
  }

  func judge(_ subscription: Consumer.Shown) -> TopicInfo.Subscription {
    var info = subscription.info
    let isHolder = hold(askedThrough: subscription.askedThrough, nextOffset: info.nextOffset)
    info.holding = isHolder ? min(info.holding, waiting) : 0
    return info
  }
}

extension TopicInfo.Subscription {
  /// Those who hold up producers come first.
  static func precedes(_ left: Self, _ right: Self) -> Bool {
    (left.holding == 0 ? 1 : 0, left.connection, left.stream)
      < (right.holding == 0 ? 1 : 0, right.connection, right.stream)
  }
}
