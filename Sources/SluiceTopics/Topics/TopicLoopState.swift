import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// The streams attached to one topic on one loop, and the flag with which the topic wakes that loop.
///
/// A topic has a list of its loop states; a loop state has lists of its subscriptions and publications. A producer's loop only sets a flag of another loop
/// and wakes that loop, once per batch, regardless of the number of subscribers.
// @unchecked: `wake()` and `wakePending` are for any thread; everything else belongs to `loop`.
package final class TopicLoopState: @unchecked Sendable {
  package let topic: Topic
  package unowned let loop: TopicLoop

  /// True from `wake()` until the loop handles the wake-up.
  private let wakePending = Atomic(false)

  /// All subscriptions on this loop; each stores its index.
  @safe @exclusivity(unchecked) package private(set) var subscriptions: [any TopicSubscriber] = []
  /// Subscriptions that have received all records and wait for more or for the end.
  @safe @exclusivity(unchecked) private var waiting: [any TopicSubscriber] = []
  @safe @exclusivity(unchecked) package private(set) var publications: [any TopicPublisher] = []
  /// The groups with members on this loop, and the number of these members.
  @safe @exclusivity(unchecked) private var groups: [(group: Group, members: Int)] = []
  /// Members that their groups have called since the last wake-up. From any thread.
  private let calledMembers = Mutex<[any LoopGroupMember]>([])
  /// The newest segment that was read here.
  package let hint = SegmentHint()

  /// The positions of the subscriptions at the end of the last turn in which they moved: never ahead of the present ones.
  private let reported = Mutex(ReaderPositions())
  /// True from `readersMoved()` until the end of the turn.
  @safe @exclusivity(unchecked) private var isReportDue = false
  private let hasPublications = Atomic(false)
  /// Whether producers were woken since the loop last asked for their grants.
  private let producersDue = Atomic(false)
  /// The topic's state version that this loop has handled.
  @safe @exclusivity(unchecked) private var seenVersion: UInt64 = 0
  /// The number of subscriptions on this loop that are notified of the number of publications.
  private var producerWatchers = 0
  /// The number of subscriptions on this loop that feed mirrors on other nodes.
  private var mirrors = 0
  /// The number of the topic's epoch at the last change of state.
  private var seenEpoch: UInt64 = 0
  /// Whether the topic's producers were paced at the last change of its state.
  private var isPacing = false
  /// The part of the topic's holds that has been counted here.
  private var countedHolds = HoldLog.Mark()
  /// The topic's traffic on this loop.
  @safe @exclusivity(unchecked) package var traffic = TrafficCount()

  init(topic: Topic, loop: TopicLoop) {
    self.topic = topic
    self.loop = loop
  }

  /// Makes the loop handle new records or a changed state of the topic. From any thread.
  package func wake() {
    if !wakePending.exchange(true, ordering: .acquiringAndReleasing) { loop.enqueue(self) }
  }

  /// Handles a wake-up: makes all waiting subscriptions ready.
  package func woken() {
    wakePending.store(false, ordering: .sequentiallyConsistent)
    hint.dropRetired()
    applyStateChanges()
    // A woken subscription waits again at the end of the turn, not here.
    if waiting.count == 1 {
      waiting.removeLast().woken()
    } else {
      for subscription in waiting { subscription.woken() }
      waiting.removeAll(keepingCapacity: true)
    }
    if !groups.isEmpty { wakeGroups() }
  }

  /// Applies changes of the topic besides records. Most wake-ups are for records alone and don't concern publications.
  private func applyStateChanges() {
    let version = topic.stateVersion.load(ordering: .acquiring)
    let isChanged = version != seenVersion
    seenVersion = version
    guard producersDue.exchange(false, ordering: .acquiringAndReleasing) || isChanged else { return }
    for publication in publications { publication.topicChanged() }
    guard isChanged else { return }
    leaveFormerEpoch()
    if topic.isPaced { beginPacing() } else { isPacing = false }
    if producerWatchers > 0 { for subscription in subscriptions { subscription.producersChanged() } }
    if mirrors > 0 { for subscription in subscriptions { subscription.floorChanged() } }
    // The hint would keep the log of an earlier epoch in memory.
    hint.clear()
    guard let fault = topic.departureFault else { return }
    for subscription in subscriptions { subscription.topicGone(fault) }
  }

  /// Restarts subscriptions that were opened under another number of the topic's epoch.
  private func leaveFormerEpoch() {
    guard topic.isDurable else { return }
    let number = topic.epoch.number
    guard number != seenEpoch else { return }
    seenEpoch = number
    for subscription in subscriptions { subscription.epochContinued() }
  }

  /// Makes the subscriptions report their positions. They may not have reported them, because the topic wasn't paced when they attached, or its epoch has
  /// changed.
  private func beginPacing() {
    if !isPacing {
      isPacing = true
      for subscription in subscriptions { subscription.pacingBegan() }
    }
    readersMoved()
  }

  // MARK: Subscriptions

  package func add(_ subscription: any TopicSubscriber) {
    subscription.index = subscriptions.count
    subscriptions.append(subscription)
    traffic.requested(from: 0, to: subscription.credit.granted)
    if subscription.wantsProducers {
      producerWatchers += 1
      topic.watchProducers(true)
    }
    if subscription.feedsMirror { mirrors += 1 }
    topic.failWhenProducersStayLost(on: loop)
    readersMoved()
  }

  /// - Parameter undone: the offset of the first record that the subscription needs when it returns, if any.
  package func remove(_ subscription: any TopicSubscriber, undone: UInt64? = nil) {
    if case .waiting(let index) = subscription.place {
      waiting.removeUnordered(at: Int(index))?.move(to: .waiting(index: index))
      subscription.move(to: .none)
    }
    subscriptions.removeUnordered(at: subscription.index)?.index = subscription.index
    if subscription.wantsProducers {
      producerWatchers -= 1
      topic.watchProducers(false)
    }
    if subscription.feedsMirror { mirrors -= 1 }
    withdraw(from: subscription.attachedEpoch, undone: undone)
  }

  /// Detaches a subscription from the topic, also one that failed to attach.
  package func withdraw(from epoch: TopicEpoch?, undone: UInt64? = nil) {
    if topic.isPaced { report() }
    if let epoch { topic.detachSubscription(from: epoch, undone: undone) }
    retireIfUnused()
  }

  /// Makes `subscription` wait until the head moves or the topic ends.
  package func wait(_ subscription: any TopicSubscriber) {
    subscription.move(to: .waiting(index: Int32(waiting.count)))
    waiting.append(subscription)
  }

  // MARK: Groups

  package func add(_ member: any TopicSubscriber, of group: Group) {
    if let index = groups.firstIndex(where: { $0.group === group }) {
      groups[index].members += 1
    } else {
      groups.append((group, 1))
    }
    add(member)
  }

  package func remove(_ member: any TopicSubscriber & LoopGroupMember, of group: Group) {
    if let index = groups.firstIndex(where: { $0.group === group }) {
      groups[index].members -= 1
      if groups[index].members == 0 { groups.remove(at: index) }
    }
    calledMembers.withLock { $0.removeAll { $0 === member } }
    remove(member, undone: group.flow.floor)
  }

  /// Makes a member on this loop ask its group again. From any thread, without a lock.
  package func call(_ member: any LoopGroupMember) {
    if loop.loop.isCurrent { return member.called() }
    calledMembers.withLock { $0.append(member) }
    wake()
  }

  private func wakeGroups() {
    let called = calledMembers.withLock { called in
      defer { called.removeAll(keepingCapacity: called.capacity <= 64) }
      return called
    }
    for member in called { member.called() }
    for (group, _) in groups { group.advanced(on: loop) }
  }

  // MARK: Traffic

  // Counters for each batch, as functions: in another module each access of the property itself would be checked at run time.

  package func received(_ records: UInt32, bytes: Int) { traffic.received(UInt64(records), bytes: bytes) }

  package func sent(_ records: UInt64, bytes: Int) { traffic.sent(records, bytes: bytes) }

  package func requested(from former: UInt64, to granted: UInt64) {
    traffic.requested(from: former, to: granted)
  }

  package func acknowledged(_ records: UInt64) { traffic.acknowledged(records) }

  // MARK: Publications

  package func add(_ publication: any TopicPublisher) {
    publication.index = publications.count
    publications.append(publication)
    hasPublications.store(true, ordering: .releasing)
  }

  /// - Parameter held: the unused part of the publication's grants.
  package func remove(
    _ publication: any TopicPublisher, returning held: PublishingBudget.Allowance,
    _ ticket: ProducerTable.Ticket?,
    hasCompleted: Bool
  ) {
    traffic.heldUp(since: publication.heldUpSince, until: loop.loop.now)
    publications.removeUnordered(at: publication.index)?.index = publication.index
    hasPublications.store(!publications.isEmpty, ordering: .releasing)
    topic.detachPublication(
      returning: held, ticket, hasCompleted: hasCompleted, now: loop.loop.now)
    topic.failWhenProducersStayLost(on: loop)
    retireIfUnused()
  }

  // MARK: Flow

  /// The last reported positions of the subscriptions on this loop. From any thread.
  package var positions: ReaderPositions { reported.withLock { $0 } }

  /// Keeps all records until the next report: a subscription with an unknown start is about to attach.
  package func protectEverything() {
    reported.withLock {
      $0.oldest = 0
      $0.readsNewestFrom = 0
    }
  }

  /// Reports at the end of the turn that a subscription has moved or requested more.
  package func readersMoved() {
    guard topic.isPaced, !isReportDue else { return }
    isReportDue = true
    loop.reportAtEndOfTurn(self)
  }

  /// Reports the positions of the subscriptions to the topic.
  package func report() {
    isReportDue = false
    // Before the positions change.
    countHolds()
    var positions = ReaderPositions()
    for subscription in subscriptions { subscription.report(to: &positions) }
    let hasChanged = reported.withLock { reported in
      defer { reported = positions }
      return reported != positions
    }
    if hasChanged { topic.readersMoved() }
  }

  /// Makes each subscription here count the holds that its position has caused. On the loop.
  package func countHolds() {
    guard topic.isPaced else { return }
    let holds = topic.holds(since: &countedHolds)
    guard !holds.isEmpty else { return }
    let now = loop.loop.now
    for subscription in subscriptions { subscription.count(holds, to: now) }
    for (group, _) in groups { group.flow.countHolds(now: now) }
  }

  /// Counts holds on the loop after a long hold has ended. From any thread.
  func countHoldsSoon() {
    // The loop may outlive the broker.
    loop.loop.execute { [loop] in withExtendedLifetime(loop) { self.countHolds() } }
  }

  /// Makes the publications here request more grants. From any thread.
  package func wakeProducers() {
    guard hasPublications.load(ordering: .acquiring) else { return }
    producersDue.store(true, ordering: .releasing)
    wake()
  }

  private func retireIfUnused() {
    if subscriptions.isEmpty, publications.isEmpty { topic.remove(self) }
  }
}

extension Array {
  /// Removes the element at `index` by moving the last one there. Returns the moved element, whose index has changed; nil if none has moved.
  package mutating func removeUnordered(at index: Int) -> Element? {
    let last = removeLast()
    guard index < count else { return nil }
    self[index] = last
    return last
  }
}
