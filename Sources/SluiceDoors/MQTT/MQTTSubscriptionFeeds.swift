import SluiceMQTT
import SluiceWire

/// The streams of one subscription of a session: two for `parent/#`. What its filter says is in the session.
struct MQTTSubscriptionFeeds {
  var streams: [UInt32] = []
  /// Those of its retained messages, which come to an end.
  var retained: [UInt32] = []
  /// Streams whose answers are awaited.
  var waiting: UInt32 = 0
  var hasAnswered = false
  /// Where it goes on in topics, until it has answered; nil where it begins at ``start``.
  var resumed: [TopicPosition]?
  /// Whether the client has it, from before this connection or by SUBACK: then it isn't given up for what passes.
  var stands = false
  /// That it is opened again later; nil where it isn't.
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

  /// It stands in the place of another one, and goes on where that one is.
  ///
  /// - Parameter positions: in the topics that the former one has.
  mutating func goOn(as former: Self, at positions: [TopicPosition]) {
    stands = former.stands
    // Where the former one isn't there yet, from where it was to begin.
    if !former.hasAnswered { start = former.start }
    resumed = former.hasAnswered || former.resumed != nil ? positions : nil
  }

  /// What the broker is granted at first: at QoS 0 the transport alone holds records back.
  var initialDemand: UInt64 { isUnlimited ? Credit.unlimited : 0 }
}
