import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// One of the topics of a subscription to a pattern: a subscription of its own but for its demand, which is the pattern's.
///
/// It counts as a subscriber of its topic in every respect. Belongs to its connection's loop.
final class PatternMember: SubscriptionOwner, JoinedTopic {
  /// Where a member begins, how many records it has missed before, and what happens when it misses more.
  struct Begin {
    var cursor: LogCursor
    var missed: UInt64
    var lag: Subscribe.LagPolicy
    /// Its subscriber was there before.
    var isResuming: Bool
    /// The epoch that it knew is one that this one continues.
    var continues = false
  }

  /// The pattern's subscription has it, as long as it does.
  unowned let pattern: PatternStream
  let subscription: SubscriptionStream
  /// The topic's number on the stream.
  let number: UInt32
  /// What MATCHED says of it.
  let beginning: Subscribed
  let missedAtStart: UInt64

  /// Whether its subscriber knows of it.
  var isAnnounced = false
  /// True while it was there from the beginning, and hasn't gone live.
  var isAwaited: Bool
  /// Its terminal event was told. It stays until the topic is deleted, and has nothing to do.
  private(set) var isCompleted = false
  /// The number of the topic's epoch isn't on disk yet. The member gets no turns before: after a crash the broker wouldn't know the number in MATCHED.
  var awaitsEpoch = false
  /// The subscriber's position under the topic's former number, while the member waits for the new one; nil if the subscriber knows none.
  var knownPosition: TopicPosition?
  /// Its turns begin when this frame of another node, which served the topic before, is written.
  var begins: UInt64 = 0
  /// Its index among the pattern's members whose topics pace their producers, if its topic does.
  var pacedIndex: Int?

  init(
    of pattern: PatternStream, number: UInt32, loopState: TopicLoopState, epoch: TopicEpoch,
    _ begin: Begin,
    matcher: RecordMatcher?, isAwaited: Bool
  ) {
    self.pattern = pattern
    self.number = number
    self.isAwaited = isAwaited
    let liveOffset = max(epoch.log.head, begin.cursor.nextOffset)
    missedAtStart = begin.missed
    subscription = SubscriptionStream(
      stream: pattern.stream, loopState: loopState, epoch: epoch, streams: pattern.streams,
      cursor: begin.cursor, liveOffset: liveOffset, lag: begin.lag, granted: 0,
      isResuming: begin.isResuming, matcher: matcher)
    beginning = Subscribed(
      epoch: subscription.epochNumber, nextOffset: begin.cursor.nextOffset, liveOffset: liveOffset,
      gaps: epoch.newest != nil || matcher != nil, continues: begin.continues)
    subscription.owner = self
  }

  var topic: Topic { subscription.topic }
  var name: String { topic.name }
  var place: SubscriberPlace { subscription.place }
  var isBehind: Bool { subscription.isBehind }

  func leave() { subscription.release() }

  var loopState: TopicLoopState { subscription.loopState }

  var demand: Credit { pattern.pacingDemand }

  func woken() { pattern.takeTurn(self) }

  func pacingBegan() { pattern.pace(self) }

  func topicGone(_ fault: Fault) { pattern.topicGone(self, fault) }

  func epochContinued() { if !isCompleted { pattern.epochContinued(self) } }

  func completed() { isCompleted = true }
}

/// The members of a pattern's subscription that is over, which leave their topics a share at a time.
///
/// Until a member has left, its topic counts it as a subscriber; it is sent nothing more.
// @unchecked: belongs to the loop of its connection, which runs its jobs.
final class PatternDeparture: @unchecked Sendable {
  /// Leaving a topic takes about a microsecond.
  private static let together = 256

  /// Members refer to their pattern's subscription, and to their connection, as long as they are in their topics' lists.
  private let pattern: PatternStream
  private let streams: StreamMultiplexer
  private let transport: any StreamTransport
  private var members: ArraySlice<PatternMember>

  init(_ members: [PatternMember], of pattern: PatternStream) {
    self.pattern = pattern
    streams = pattern.streams
    transport = streams.transport
    self.members = members[...]
  }

  /// Has the next members leave, and goes on in a later turn. On the connection's loop.
  func goOn() {
    for member in members.prefix(Self.together) { member.subscription.release() }
    members = members.dropFirst(Self.together)
    guard !members.isEmpty else { return }
    streams.loop.execute { [self] in goOn() }
  }
}
