import SluiceLog
import Synchronization

/// What is attached to one topic on one loop, and the thread by which the topic wakes it.
///
/// A topic knows its taps; a tap knows its subscriptions and publications. All a producer's loop does to another loop is to
/// set a flag and to wake it, once per batch however many subscribers there are.
// @unchecked: `wake()` and `wakePending` are for any thread; everything else belongs to `loop`.
final class TopicTap: @unchecked Sendable {
  let topic: Topic
  unowned let loop: LoopContext

  /// True from `wake()` until the loop has seen it.
  private let wakePending = Atomic(false)

  /// Every subscription on this loop; each knows its place.
  private(set) var subscriptions: [Subscription] = []
  /// Those of them that have had everything and wait for the head to move, or the end.
  private var waiting: [Subscription] = []
  private(set) var publications: [Publication] = []
  /// The newest segment that was read here: where those who follow the head find their records without a lock.
  private(set) var newestSegment: Segment?

  init(topic: Topic, loop: LoopContext) {
    self.topic = topic
    self.loop = loop
  }

  /// The topic has more, or has ended. From any thread.
  func wake() {
    if !wakePending.exchange(true, ordering: .acquiringAndReleasing) { loop.enqueue(self) }
  }

  /// The loop has come to a wake-up: makes ready all that waited.
  func woken() {
    wakePending.store(false, ordering: .sequentiallyConsistent)
    // What the log has dropped isn't kept alive for the sake of a short cut.
    if let newestSegment, newestSegment.isRetired { self.newestSegment = nil }
    switch topic.condition {
    case .open: break
    case .ended:
      for publication in publications { publication.connection.topicEnded(publication) }
    case .deleted:
      for publication in publications {
        publication.connection.topicDeleted(publication.stream, name: topic.name)
      }
      for subscription in subscriptions {
        subscription.connection.topicDeleted(subscription.stream, name: topic.name)
      }
    }
    for subscription in waiting {
      subscription.place = .none
      subscription.connection.makeReady(subscription)
    }
    waiting.removeAll(keepingCapacity: true)
  }

  /// A slice came from `segment`.
  func saw(_ segment: Segment) {
    if let newestSegment, !newestSegment.isRetired, newestSegment.baseOffset >= segment.baseOffset { return }
    newestSegment = segment
  }

  // MARK: Subscriptions

  func add(_ subscription: Subscription) {
    subscription.index = subscriptions.count
    subscriptions.append(subscription)
    topic.subscriptions.add(1, ordering: .relaxed)
  }

  func remove(_ subscription: Subscription) {
    if case .waiting(let index) = subscription.place {
      let last = waiting.removeLast()
      if last !== subscription {
        waiting[index] = last
        last.place = .waiting(index: index)
      }
      subscription.place = .none
    }
    let last = subscriptions.removeLast()
    if last !== subscription {
      subscriptions[subscription.index] = last
      last.index = subscription.index
    }
    topic.subscriptions.subtract(1, ordering: .relaxed)
    retireIfUnused()
  }

  /// Lets `subscription` sleep until the head moves or the topic ends.
  func wait(_ subscription: Subscription) {
    subscription.place = .waiting(index: waiting.count)
    waiting.append(subscription)
  }

  // MARK: Publications

  func add(_ publication: Publication) {
    publication.index = publications.count
    publications.append(publication)
    topic.publications.add(1, ordering: .relaxed)
  }

  func remove(_ publication: Publication) {
    let last = publications.removeLast()
    if last !== publication {
      publications[publication.index] = last
      last.index = publication.index
    }
    topic.publications.subtract(1, ordering: .relaxed)
    retireIfUnused()
  }

  private func retireIfUnused() {
    if subscriptions.isEmpty, publications.isEmpty { topic.remove(self) }
  }
}
