import SluiceIO
import SluiceWire

/// A subscription, a member of a group or of a pattern's subscription, as the topic's state on its loop sees it. Belongs to that loop.
package protocol TopicSubscriber: AnyObject {
  var place: SubscriberPlace { get }
  /// Its index in ``TopicLoopState/subscriptions``.
  var index: Int { get set }
  /// The epoch in which it is counted as a subscriber.
  var attachedEpoch: TopicEpoch? { get }
  /// The records that it has requested, and those that it was sent.
  var credit: Credit { get }
  /// Whether it is notified of the number of publications.
  var wantsProducers: Bool { get }

  func move(to place: SubscriberPlace)
  /// Handles that there may be more records, or that the topic has ended. It no longer waits.
  func woken()
  /// Handles that the subscribers begin to pace the topic's producers.
  func pacingBegan()
  /// Whether it sends records to another node, which keeps them for several of its clients.
  var feedsMirror: Bool { get }
  /// Handles a floor that may have been raised by a trim, or by other settings. For subscribers that feed a mirror.
  func floorChanged()
  /// Handles a changed number of publications.
  func producersChanged()
  /// Handles that the topic was deleted, or that another node serves it.
  func topicGone(_ fault: Fault)
  /// Handles that its epoch may have another number than when it was opened.
  func epochContinued()

  /// Adds its position to the positions that pace the producers.
  func report(to positions: inout ReaderPositions)
  /// Counts the holds of producers that it has caused.
  func count(_ holds: [HoldLog.Hold], to now: MonotonicTime)

  // MARK: Description

  /// The name of its client's identity; empty if clients aren't authenticated.
  var identity: String { get }
  /// Since when its client hasn't read any of the sent bytes that wait; nil if none wait.
  var blockedSince: MonotonicTime? { get }
  /// The reason why sent bytes haven't reached the client; nil if unknown.
  var obstacle: StreamObstacle? { get }
  var standing: SubscriberStanding? { get }
  func isHolding(open hold: HoldLog.Hold?) -> Bool
  func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription?
}

extension TopicSubscriber {
  package var feedsMirror: Bool { false }
  package func floorChanged() {}

  /// A client that hasn't read for less than this isn't considered blocked.
  private static var patience: Duration { .seconds(1) }

  /// The description of the subscription for clients, with the reason for its lag. The age of its next record isn't known on its loop; see
  /// ``SluiceWire/TopicInfo/Subscription/measure(in:wallClock:)``.
  package func described(open hold: HoldLog.Hold?, at now: MonotonicTime) -> TopicInfo.Subscription? {
    guard var info = shown(open: hold) else { return nil }
    guard let standing, standing.lag > 0 else { return info }
    func time(_ since: MonotonicTime) -> UInt64 { max((now - since).clampedMilliseconds, 1) }
    if let blockedSince, now - blockedSince >= Self.patience {
      info.slow = time(blockedSince)
      info.slowness =
        switch obstacle {
        case .peer: .client
        case .network: .network
        case nil: .unread
        }
    } else if standing.available == 0 {
      info.slowness = .demand
      info.slow = standing.starvedSince.map(time) ?? 0
    } else {
      info.slowness = .pace
    }
    return info
  }
}

extension TopicInfo.Subscription {
  /// Adds the age of the next record if the subscription lags and the age is known without waiting for the store.
  ///
  /// - Parameters:
  ///   - epoch: the topic's epoch.
  ///   - wallClock: the present time in milliseconds since 1970.
  package mutating func measure(in epoch: TopicEpoch, wallClock: Int64) {
    guard slowness != .none, let (time, _) = epoch.backlog(from: nextOffset).found else { return }
    age = UInt64(max(wallClock - time, 0))
    if slowness == .pace { slow = age }
  }
}

/// The queue that contains a subscription between two deliveries.
package enum SubscriberPlace {
  /// In no queue: demand or new records make it ready.
  case none
  /// In its connection's queue of subscriptions to be served.
  case ready
  /// Among the subscriptions that wait for the topic, at this index.
  case waiting(index: Int32)
  /// It has ended.
  case ended
}

/// The demand and lag of a subscription.
package struct SubscriberStanding {
  package var nextOffset: UInt64
  /// Records that it may still be sent.
  package var available: UInt64
  /// Records between its position and the end of the topic.
  package var lag: UInt64
  /// Since when there are records for it that it hasn't requested.
  package var starvedSince: MonotonicTime?

  package init(nextOffset: UInt64, available: UInt64, lag: UInt64, starvedSince: MonotonicTime? = nil) {
    self.nextOffset = nextOffset
    self.available = available
    self.lag = lag
    self.starvedSince = starvedSince
  }
}

/// A publication as the topic's state on its loop sees it. Belongs to that loop.
package protocol TopicPublisher: AnyObject {
  /// Its index in ``TopicLoopState/publications``.
  var index: Int { get set }
  /// Its unused grants.
  var held: PublishingBudget.Allowance { get }
  /// Since when it has had no grants.
  var heldUpSince: MonotonicTime? { get }
  /// The same in milliseconds; 0 while it has grants.
  var waiting: UInt64 { get }

  /// Handles a changed state of the topic, or new grants.
  func topicChanged()

  // MARK: Description

  var identity: String { get }
  var info: TopicInfo.Publication { get }
}

/// A member of a group on a loop.
package protocol LoopGroupMember: GroupParticipant {
  /// Handles that the group may have records for it. On its loop.
  func called()
}
