import SluiceIO
import SluiceTopics

/// Notifies a subscription to a pattern of new topics, which are created on any thread.
// @unchecked: `subscription` belongs to `loop`.
final class PatternWatch: TopicWatcher, @unchecked Sendable {
  private let loop: any EventLoop
  /// Nil when the subscription has ended. Its connection retains it until then, and a loop that has released its connections runs no jobs.
  private unowned var subscription: PatternStream?

  init(on loop: any EventLoop) {
    self.loop = loop
  }

  func topicMade(_ topic: Topic, _ epoch: TopicEpoch) {
    loop.execute { [self] in subscription?.wasMade(topic, epoch) }
  }

  /// Begins to notify the subscription. On the loop.
  func begin(_ subscription: PatternStream) { self.subscription = subscription }

  /// Stops notifying it, including notifications in flight. On the loop.
  func end() { subscription = nil }
}
