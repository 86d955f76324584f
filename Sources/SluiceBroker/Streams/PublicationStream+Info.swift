import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

// The description of a publication for monitoring.
extension PublicationStream {
  var held: PublishingBudget.Allowance { streams.session.held(stream) }
  var identity: String { streams.client.identity.name }

  /// The publication as TOPIC_SHOW describes it. On its loop only.
  var info: TopicInfo.Publication {
    let credit = streams.session.publication(stream)?.records ?? Credit()
    let user = streams.user(of: stream)
    return TopicInfo.Publication(
      connection: user.connection, client: user.client, stream: stream, granted: credit.granted,
      received: credit.spent, waiting: waiting, reason: waitReason, node: user.node)
  }

  /// The reason why the publication has no demand. On its loop only.
  private var waitReason: TopicInfo.Publication.WaitReason {
    guard heldUpSince != nil else { return .none }
    if let reason = topic.blockedReason { return reason }
    if waitsForRate { return .rate }
    if let hold = topic.holds.withLock({ $0.open }) { return hold.cause.reason }
    return topic.isPaced ? .subscribers : .none
  }

  /// How long the publication has had no demand, in milliseconds; 0 when it has some. On its loop only.
  var waiting: UInt64 {
    guard let heldUpSince else { return 0 }
    return max((streams.loop.now - heldUpSince).clampedMilliseconds, 1)
  }
}
