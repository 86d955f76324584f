import SluiceIO
import SluiceLog
import SluiceSession
import SluiceWire
import Synchronization

/// What is attached to one topic on one loop, and the thread by which the topic wakes it.
///
/// A topic knows its loopStates; a loopState knows its subscriptions and publications. All a producer's loop does to another loop is to
/// set a flag and to wake it, once per batch however many subscribers there are.
// @unchecked: `wake()` and `wakePending` are for any thread; everything else belongs to `loop`.
final class TopicLoopState: @unchecked Sendable {
  let topic: Topic
  unowned let loop: LoopContext

  /// True from `wake()` until the loop has seen it.
  private let wakePending = Atomic(false)

  /// Every subscription on this loop; each knows its place.
  private(set) var subscriptions: [Consumer] = []
  /// Those of them that have had everything and wait for the head to move, or the end.
  private var waiting: [Consumer] = []
  private(set) var publications: [PublicationStream] = []
  /// The groups of members on this loop, and how many these are.
  private var groups: [(group: Group, members: Int)] = []
  /// Members that their groups have called since the loop looked. From any thread.
  private let calledMembers = Mutex<[GroupMember]>([])
  /// The newest segment that was read here.
  var hint = SegmentHint()

  /// Where the subscriptions stood at the end of the last turn in which they moved: never ahead of where they stand now.
  private let reported = Mutex(ReaderPositions())
  /// True from `readersMoved()` until the end of the turn.
  private var isReportDue = false
  private let hasPublications = Atomic(false)
  /// Whether producers were woken since the loop last served them, and the state version of the topic that it has seen.
  private let producersDue = Atomic(false)
  private var seenVersion: UInt64 = 0
  /// Subscriptions on this loop that are told how many publications there are.
  private var producerWatchers = 0
  /// Whether the topic's producers were paced when the loop last looked.
  private var isPacing = false
  /// Up to where the topic's holds are counted here.
  private var countedHolds = HoldLog.Mark()
  /// What has gone through the topic here.
  var traffic = TrafficCount()

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
    hint.dropRetired()
    applyStateChanges()
    for subscription in waiting {
      subscription.woken()
    }
    waiting.removeAll(keepingCapacity: true)
    if !groups.isEmpty { wakeGroups() }
  }

  /// Most wake-ups are about records alone, and those who publish needn't be asked.
  private func applyStateChanges() {
    let version = topic.stateVersion.load(ordering: .acquiring)
    let isChanged = version != seenVersion
    seenVersion = version
    guard producersDue.exchange(false, ordering: .acquiringAndReleasing) || isChanged else { return }
    for publication in publications { publication.topicChanged() }
    guard isChanged else { return }
    if topic.isPaced { beginPacing() }
    if producerWatchers > 0 { for subscription in subscriptions { subscription.producersChanged() } }
    // The log of an epoch that is over isn't kept for the sake of a short cut.
    hint = SegmentHint()
    guard topic.isDeleted else { return }
    for subscription in subscriptions {
      subscription.topicDeleted(topic.name)
    }
  }

  /// The subscriptions here may not have told where they stand: the topic wasn't paced when they came, or they read an epoch that is over now.
  private func beginPacing() {
    if !isPacing {
      isPacing = true
      for subscription in subscriptions { subscription.pacingBegan() }
    }
    readersMoved()
  }

  // MARK: Subscriptions

  func add(_ subscription: Consumer) {
    subscription.index = subscriptions.count
    subscriptions.append(subscription)
    traffic.requested(from: 0, to: subscription.credit.granted)
    if subscription.wantsProducers {
      producerWatchers += 1
      topic.watchProducers(true)
    }
    topic.failWhenProducersStayLost(on: loop)
    readersMoved()
  }

  /// - Parameter undone: of the first record that whoever leaves wants to find when it comes back, if any.
  func remove(_ subscription: Consumer, undone: UInt64? = nil) {
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
    if subscription.wantsProducers {
      producerWatchers -= 1
      topic.watchProducers(false)
    }
    withdraw(from: subscription.attachedEpoch, undone: undone)
  }

  /// A subscription has left, or didn't come after all.
  func withdraw(from epoch: TopicEpoch?, undone: UInt64? = nil) {
    if topic.isPaced { report() }
    if let epoch { topic.detachSubscription(from: epoch, undone: undone) }
    retireIfUnused()
  }

  /// Lets `subscription` sleep until the head moves or the topic ends.
  func wait(_ subscription: Consumer) {
    subscription.place = .waiting(index: waiting.count)
    waiting.append(subscription)
  }

  // MARK: Groups

  func add(_ member: GroupMember) {
    if let index = groups.firstIndex(where: { $0.group === member.group }) {
      groups[index].members += 1
    } else {
      groups.append((member.group, 1))
    }
    add(member as Consumer)
  }

  func remove(_ member: GroupMember) {
    if let index = groups.firstIndex(where: { $0.group === member.group }) {
      groups[index].members -= 1
      if groups[index].members == 0 { groups.remove(at: index) }
    }
    calledMembers.withLock { $0.removeAll { $0 === member } }
    remove(member as Consumer, undone: member.group.flow.floor)
  }

  /// A member's group has something for it. From any thread.
  func call(_ member: GroupMember) {
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

  // MARK: Publications

  func add(_ publication: PublicationStream) {
    publication.index = publications.count
    publications.append(publication)
    hasPublications.store(true, ordering: .releasing)
  }

  /// - Parameter held: what the publication was granted and hasn't used.
  func remove(
    _ publication: PublicationStream, returning held: PublishingBudget.Allowance,
    _ ticket: ProducerTable.Ticket?,
    hasCompleted: Bool
  ) {
    traffic.heldUp(since: publication.heldUpSince, until: loop.loop.now)
    let last = publications.removeLast()
    if last !== publication {
      publications[publication.index] = last
      last.index = publication.index
    }
    hasPublications.store(!publications.isEmpty, ordering: .releasing)
    topic.detachPublication(
      returning: held, ticket, hasCompleted: hasCompleted, now: loop.loop.now)
    topic.failWhenProducersStayLost(on: loop)
    retireIfUnused()
  }

  // MARK: Flow

  /// Where the subscriptions on this loop stand, or stood not long ago. From any thread.
  var positions: ReaderPositions { reported.withLock { $0 } }

  /// A subscription is about to come, of which it isn't known yet where it starts: nothing is dropped until the next report.
  func protectEverything() {
    reported.withLock {
      $0.oldest = 0
      $0.readsNewestFrom = 0
    }
  }

  /// Some subscription has moved, or has asked for more: told at the end of the turn.
  func readersMoved() {
    guard topic.isPaced, !isReportDue else { return }
    isReportDue = true
    loop.reportAtEndOfTurn(self)
  }

  /// Tells the topic where the subscriptions stand.
  func report() {
    isReportDue = false
    // Before the subscriptions tell where they stand now.
    countHolds()
    var positions = ReaderPositions()
    for subscription in subscriptions { subscription.report(to: &positions) }
    let hasChanged = reported.withLock { reported in
      defer { reported = positions }
      return reported != positions
    }
    if hasChanged { topic.readersMoved() }
  }

  /// Has each subscription here count the holds that its position has made. On the loop.
  func countHolds() {
    guard topic.isPaced else { return }
    let holds = topic.holds(since: &countedHolds)
    guard !holds.isEmpty else { return }
    let now = loop.loop.now
    for subscription in subscriptions { subscription.count(holds, to: now) }
    for (group, _) in groups { group.flow.countHolds(now: now) }
  }

  /// A long hold is over. From any thread.
  func countHoldsSoon() {
    // The loop may outlive the broker.
    loop.loop.execute { [loop] in withExtendedLifetime(loop) { self.countHolds() } }
  }

  /// Producers may go on. From any thread.
  func wakeProducers() {
    guard hasPublications.load(ordering: .acquiring) else { return }
    producersDue.store(true, ordering: .releasing)
    wake()
  }

  private func retireIfUnused() {
    if subscriptions.isEmpty, publications.isEmpty { topic.remove(self) }
  }
}
