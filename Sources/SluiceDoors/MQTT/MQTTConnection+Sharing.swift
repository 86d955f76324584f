import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Shared subscriptions are consumer groups of the broker.
extension MQTTConnection {
  /// A group belongs to one topic. A filter with wildcards is a group of that name in each topic that it selects: each record goes to one member, and all
  /// these groups share the client's window.
  func join(_ number: UInt16, _ patterns: [String], _ group: String, _ subscription: MQTTSubscriptionFeeds) {
    for pattern in patterns {
      let isTopic = (try? TopicName.validate(pattern)) != nil
      let granted = isTopic ? subscription.initialDemand : 0
      guard opensStreams,
        let stream = native.openSubscription(granted: granted, isPattern: !isTopic, isShared: isTopic)
      else { return refused(number, Self.noStream, isPassing: true) }
      if isTopic {
        add(MQTTFeed(.group, number: number, stream: stream, granted: granted))
        join(stream, pattern, group, subscription, start: subscription.start)
      } else {
        add(MQTTFeed(.watch, number: number, stream: stream, granted: 0))
        link.send(SubscribePattern(pattern: pattern, start: .new, grantedThrough: 0), stream: stream)
      }
    }
  }

  /// Joins a group. Its settings are the same at every QoS, so members may differ in QoS. At QoS 0 a record is acknowledged as soon as it is sent.
  func join(
    _ stream: UInt32, _ topic: String, _ group: String, _ subscription: MQTTSubscriptionFeeds,
    start: Subscribe.Start
  ) {
    link.send(
      JoinGroup(
        topic: topic, group: group, start: start, settings: JoinGroup.Settings(acknowledgement: .explicit),
        grantedThrough: subscription.initialDemand), stream: stream)
  }

  /// A shared filter selects another topic.
  func watched(_ feed: MQTTFeed, _ matched: Matched) {
    guard let subscription = subscriptions[feed.number], let filter = session.filter(of: feed.number),
      let group = filter.group, filter.isFor(broker: matched.topic), !Self.isHidden(matched.topic),
      opensStreams,
      let stream = native.openSubscription(granted: subscription.initialDemand, isShared: true)
    else { return }
    let member = MQTTFeed(.group, number: feed.number, stream: stream, granted: subscription.initialDemand)
    member.joined = matched.topic
    add(member)
    // SUBACK waits for the topics that exist already. In a topic that is created later, every record is shared.
    join(stream, matched.topic, group, subscription, start: feed.hasBegun ? .earliest : subscription.start)
  }
}
