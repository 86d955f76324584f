import SluiceWire

/// What a frame of the broker's means for the client, once the session has found it in order.
@safe
enum ClientAction {
  /// Nothing, or nothing any more.
  case none

  // Records: this is the one that comes often.
  /// A batch for a subscription, within its grant.
  case deliver(stream: UInt32, DeliverHeader, batch: UnsafeRawBufferPointer)

  // Subscriptions
  case subscribed(stream: UInt32, Subscribed)
  case live(stream: UInt32, Live)
  case lagged(stream: UInt32, Lag)
  /// How many producers the subscription's topic has.
  case producers(stream: UInt32, count: UInt32)
  /// Of a pattern: a topic belongs to it, or doesn't any more; frames that follow are about another; the topic that they are about has ended.
  indirect case matched(stream: UInt32, Matched)
  case unmatched(stream: UInt32, number: UInt32)
  case turned(stream: UInt32, number: UInt32)
  indirect case topicEnded(stream: UInt32, Complete.Ending)
  /// The records that follow are delivered to a member of a group for that time.
  case deliveries(stream: UInt32, count: UInt32)

  // Publications
  /// All records before `next` are acknowledged.
  case publicationOpened(stream: UInt32, next: UInt64)
  /// More may be published.
  case granted(stream: UInt32)
  case acknowledged(stream: UInt32, Ack)
  /// Whether the topic of a source is connected, said whenever that changes and at first.
  case connection(stream: UInt32, isConnected: Bool)
  /// The end of the topic that this publication asked for is in the log.
  case completed(stream: UInt32, startedOver: Bool)

  // Ends. The stream's number is free with them.
  /// A subscription's or publication's topic is over.
  case ended(stream: UInt32, Complete.Ending)
  /// A subscription, a publication or a request was refused, or broken off.
  case refused(stream: UInt32, Fault)
  /// A cancelled stream is gone.
  case cancelled

  // Requests
  case topicInfo(stream: UInt32, TopicInfo)
  case topics(stream: UInt32, Topics)
  case cursors(stream: UInt32, Cursors)
  case done(stream: UInt32)
  indirect case authenticated(stream: UInt32, Authenticated)

  // The connection
  case opened(Welcome)
  /// The broker wants a sign of life: answer with this token.
  case answerPing(token: UInt64)
  case pong(token: UInt64)
  case goAway(GoAway)
  /// Why the broker is about to close.
  case failed(Fault)
}
