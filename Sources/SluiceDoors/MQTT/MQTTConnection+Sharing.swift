import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Shared subscriptions: groups of the broker.
extension MQTTConnection {
  /// A group belongs to one topic. A filter with wildcards is a group of that name in each topic that it selects: each record goes to one member, and all
  /// of them share the client's window.
  func join(_ request: MQTTSubscriptionRequest, _ group: String) {
    for pattern in request.patterns {
      let isTopic = (try? TopicName.validate(pattern)) != nil
      guard opensStreams,
        let stream = native.openSubscription(granted: 0, isPattern: !isTopic, isShared: isTopic)
      else { return answer(request.number, Self.noStream) }
      if isTopic {
        add(MQTTFeed(.group, number: request.number, stream: stream, granted: initialDemand(of: request)))
        join(stream, pattern, group, request, start: request.start)
      } else {
        add(MQTTFeed(.watch, number: request.number, stream: stream, granted: 0))
        link.send(SubscribePattern(pattern: pattern, start: .new, grantedThrough: 0), stream: stream)
      }
    }
  }

  /// At QoS 0 the transport alone holds records back.
  func initialDemand(of request: MQTTSubscriptionRequest) -> UInt64 {
    request.isUnlimited ? Credit.unlimited : 0
  }

  func join(
    _ stream: UInt32, _ topic: String, _ group: String, _ request: MQTTSubscriptionRequest,
    start: Subscribe.Start
  ) {
    link.send(
      JoinGroup(
        topic: topic, group: group, start: start,
        settings: JoinGroup.Settings(acknowledgement: request.isUnlimited ? .automatic : .explicit),
        grantedThrough: initialDemand(of: request)), stream: stream)
  }

  /// A shared filter selects another topic.
  func watched(_ feed: MQTTFeed, _ matched: Matched) {
    guard let request = subscriptions[feed.number]?.request, let group = request.group,
      !Self.isHidden(matched.topic), opensStreams,
      let stream = native.openSubscription(granted: initialDemand(of: request), isShared: true)
    else { return }
    let member = MQTTFeed(
      .group, number: feed.number, stream: stream, granted: initialDemand(of: request))
    member.joined = matched.topic
    add(member)
    // SUBACK waits for the topics that are there. Of a topic that is created later every record is shared.
    join(stream, matched.topic, group, request, start: feed.hasBegun ? .earliest : request.start)
  }
}
