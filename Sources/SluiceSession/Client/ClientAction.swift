import SluiceWire

/// The client's reaction to a valid frame of the broker.
@safe
package enum ClientAction {
  /// Nothing: the frame's stream was cancelled, or the frame changes nothing.
  case none

  // Records: the most frequent action.
  /// A batch for a subscription, within its grant. Valid during the frame's handling only.
  case deliver(stream: UInt32, DeliverHeader, batch: UnsafeRawBufferPointer)

  // Subscriptions
  case subscribed(stream: UInt32, Subscribed)
  case live(stream: UInt32, Live)
  case lagged(stream: UInt32, Lag)
  /// The number of producers that the subscription's topic has.
  case producers(stream: UInt32, count: UInt32)
  /// For a pattern: a topic matches, or no longer matches; the following frames belong to the topic with this number; that topic has ended.
  indirect case matched(stream: UInt32, Matched)
  case unmatched(stream: UInt32, number: UInt32)
  case selectedTopic(stream: UInt32, number: UInt32)
  indirect case topicEnded(stream: UInt32, Complete.Ending)
  /// The records that follow are delivered to a group member for the `count`th time.
  case deliveries(stream: UInt32, count: UInt32)

  // Publications
  /// All records before its next sequence are acknowledged.
  case publicationOpened(stream: UInt32, PublishOpened)
  /// The grant has grown.
  case granted(stream: UInt32)
  case acknowledged(stream: UInt32, Ack)
  /// Whether the topic of a source is connected: first after the publication has opened, then at each change.
  case connection(stream: UInt32, isConnected: Bool)
  /// The broker has ended the topic as this publication asked.
  case completed(stream: UInt32, startedOver: Bool)

  // Ends, each of which frees the stream's number
  /// The topic of a subscription or publication has ended.
  case ended(stream: UInt32, Complete.Ending)
  /// The broker has refused or aborted a subscription, a publication or a request.
  case refused(stream: UInt32, Fault)
  /// The broker has confirmed a cancellation.
  case cancelled
  /// The subscription or publication is to be opened at another node.
  indirect case redirected(stream: UInt32, Redirect)

  // Requests
  indirect case topicInfo(stream: UInt32, TopicInfo)
  case topics(stream: UInt32, Topics)
  case cursors(stream: UInt32, Cursors)
  case states(stream: UInt32, TopicStates)
  case connections(stream: UInt32, Connections)
  indirect case brokerInfo(stream: UInt32, BrokerInfo)
  indirect case clusterInfo(stream: UInt32, ClusterInfo)
  case done(stream: UInt32)
  indirect case authenticated(stream: UInt32, Authenticated)

  // The connection
  indirect case opened(Welcome)
  /// The broker sent PING: answer with PONG and this token.
  case answerPing(token: UInt64)
  case pong(token: UInt64)
  case goAway(GoAway)
  /// The broker closes the connection, for this reason.
  case failed(Fault)
}
