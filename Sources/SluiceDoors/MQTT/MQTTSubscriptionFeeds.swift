import SluiceMQTT
import SluiceWire

/// The streams of one subscription of a session; `parent/#` needs two. The session contains the filter.
struct MQTTSubscriptionFeeds {
  var streams: [UInt32] = []
  /// The streams of its retained messages, which end after the last one.
  var retained: [UInt32] = []
  /// The number of streams whose answers are awaited.
  var waiting: UInt32 = 0
  var hasAnswered = false
  /// The positions at which it resumes, until it has answered; nil if it begins at ``start``.
  var resumed: [TopicPosition]?
  /// Whether the client has the subscription, by SUBACK or from an earlier connection: then temporary errors don't end it.
  var stands = false
  /// The retries; nil unless the subscription waits for one.
  var trial: MQTTTrial?
  // As in ``MQTTSubscriptionRequest``.
  var isUnlimited: Bool
  var keepsCursors: Bool
  var start: Subscribe.Start

  init(isUnlimited: Bool, keepsCursors: Bool, start: Subscribe.Start) {
    self.isUnlimited = isUnlimited
    self.keepsCursors = keepsCursors
    self.start = start
  }

  init(_ request: MQTTSubscriptionRequest) {
    self.init(isUnlimited: request.isUnlimited, keepsCursors: request.keepsCursors, start: request.start)
  }

  /// Replaces another subscription, and continues at its positions.
  ///
  /// - Parameter positions: the former subscription's positions in its topics.
  mutating func goOn(as former: Self, at positions: [TopicPosition]) {
    stands = former.stands
    // If the former one wasn't open yet, begins at its start.
    if !former.hasAnswered { start = former.start }
    resumed = former.hasAnswered || former.resumed != nil ? positions : nil
  }

  /// The initial grant: unlimited at QoS 0, since only the transport limits delivery.
  var initialDemand: UInt64 { isUnlimited ? Credit.unlimited : 0 }
}
