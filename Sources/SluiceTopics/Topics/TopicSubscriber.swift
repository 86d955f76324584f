import SluiceIO
import SluiceWire

/// A subscription, a member of a group or of a pattern's subscription, as its topic's state on the loop sees it. Belongs to that loop.
package protocol TopicSubscriber: AnyObject {
  var place: SubscriberPlace { get }
  /// Its index in ``TopicLoopState/subscriptions``.
  var index: Int { get set }
  /// The epoch in which it is counted as a subscriber.
  var attachedEpoch: TopicEpoch? { get }
  /// The records that it has asked for, and those that it was sent.
  var credit: Credit { get }
  /// Whether it is told how many publications there are.
  var wantsProducers: Bool { get }

  func move(to place: SubscriberPlace)
  /// There may be more records, or the topic has ended. It no longer waits.
  func woken()
  /// The topic's producers are paced by its subscribers from now on.
  func pacingBegan()
  /// Whether another node keeps what it was sent for several of its clients.
  var feedsMirror: Bool { get }
  /// A trim, or other settings, may have raised the floor. For those that feed a mirror.
  func floorChanged()
  /// The number of publications has changed.
  func producersChanged()
  /// The topic was deleted, or another node serves it.
  func topicGone(_ fault: Fault)
  /// The epoch that it reads may have another number than when it was opened.
  func epochContinued()

  /// Adds its position to those that pace the producers.
  func report(to positions: inout ReaderPositions)
  /// Counts the holds of producers that it has caused.
  func count(_ holds: [HoldLog.Hold], to now: MonotonicTime)

  // MARK: Description

  /// The name of its client's identity; empty where clients aren't authenticated.
  var identity: String { get }
  /// Since when its client hasn't read anything of what was sent and waits; nil when nothing waits.
  var blockedSince: MonotonicTime? { get }
  /// What keeps from its client what was sent and waits; nil where that isn't known.
  var obstacle: StreamObstacle? { get }
  var standing: SubscriberStanding? { get }
  func isHolding(open hold: HoldLog.Hold?) -> Bool
  func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription?
}

extension TopicSubscriber {
  package var feedsMirror: Bool { false }
  package func floorChanged() {}

  /// A client that hasn't read for less than this is on its way to.
  private static var patience: Duration { .seconds(1) }

  /// The subscription as clients are told of it, and why it is behind. The age of its next record isn't known on its loop; see
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
  /// Fills in the age of the next record, if it is behind and that is known without waiting for the store.
  ///
  /// - Parameters:
  ///   - epoch: the topic's.
  ///   - wallClock: the present time in milliseconds since 1970.
  package mutating func measure(in epoch: TopicEpoch, wallClock: Int64) {
    guard slowness != .none, let (time, _) = epoch.backlog(from: nextOffset).found else { return }
    age = UInt64(max(wallClock - time, 0))
    if slowness == .pace { slow = age }
  }
}

/// Where a subscription is between two deliveries.
package enum SubscriberPlace {
  /// In no queue: demand or records have it served.
  case none
  /// In its connection's queue of those to be served.
  case ready
  /// Among those that wait for the topic, at this index.
  case waiting(index: Int32)
  /// It has ended.
  case ended
}

/// How far a subscription is.
package struct SubscriberStanding {
  package var nextOffset: UInt64
  /// Records that it may still be sent.
  package var available: UInt64
  /// Records between its position and the end of the topic.
  package var lag: UInt64
  /// Since when there are records for it that it hasn't asked for.
  package var starvedSince: MonotonicTime?

  package init(nextOffset: UInt64, available: UInt64, lag: UInt64, starvedSince: MonotonicTime? = nil) {
    self.nextOffset = nextOffset
    self.available = available
    self.lag = lag
    self.starvedSince = starvedSince
  }
}

/// A publication as its topic's state on the loop sees it. Belongs to that loop.
package protocol TopicPublisher: AnyObject {
  /// Its index in ``TopicLoopState/publications``.
  var index: Int { get set }
  /// What it may still publish.
  var held: PublishingBudget.Allowance { get }
  /// Since when it has had no grants.
  var heldUpSince: MonotonicTime? { get }
  /// The same in milliseconds; 0 when it has some.
  var waiting: UInt64 { get }

  /// The topic's state has changed, or there may be more grants.
  func topicChanged()

  // MARK: Description

  var identity: String { get }
  var info: TopicInfo.Publication { get }
}

/// A member of a group on a loop.
package protocol LoopGroupMember: GroupParticipant {
  /// The group has something for it. On its loop.
  func called()
}
